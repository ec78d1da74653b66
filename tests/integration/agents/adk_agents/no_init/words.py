SAID = "From beside."
