"""The colours of all charts: seven that people with any kind of colour vision can tell apart.

They are those of Okabe and Ito, with a grey for their black and without their yellow, so that each can be
seen on white and on black. What needs more than seven kinds of lines gives them markers or dashes as well.
"""

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, GREY = PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#6b7076",
)
