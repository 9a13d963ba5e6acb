"""One module per verb, each with ``add_arguments(parser)`` and ``main(arguments) -> exit code``."""
