"""Code of the user's, run in processes of its own under the interpreter that it needs."""
