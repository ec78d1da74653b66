"""What is told on a pull request or a merge request: the comment, and the check run."""
