"""`ci-eval baseline`: stores runs if the policy allows it; shows, compares, prunes them."""
