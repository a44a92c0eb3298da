"""CEL, the language of policies: compiling, evaluating and explaining rules."""
