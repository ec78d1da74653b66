"""`ci-eval init`: what a repository has, and the files that make it run."""
