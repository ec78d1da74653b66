"""What a release does beyond a line of shell; `.github/RELEASING.md` says when and why.

Run from the top of the repository, with nothing but Python and git:
`PYTHONPATH=.github python3 -m release --help`.
"""
