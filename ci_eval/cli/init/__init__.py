"""`ci-eval init`: inspects a repository and writes its configuration and workflow."""
