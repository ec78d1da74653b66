"""`ci-eval init`: surveys a repository, drafts its first configuration, and writes its workflow."""
