"""The trees of the engine: growing them, and sending rows down."""
