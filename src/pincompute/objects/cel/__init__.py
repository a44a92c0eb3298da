"""CEL, the language of rules: what a rule says, whether it holds, and which of its parts decided that."""
