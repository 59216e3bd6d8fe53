"""How things look: colours, the progress bar, models in notebooks."""
