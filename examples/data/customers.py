"""Write customers.csv and new_customers.csv: made-up customers, whose outcome follows a rule.

A tenth of the outcomes in customers.csv is wrong; `rule` knows the right ones. Cells are empty where a value
is not known.
"""

import csv
import random
from pathlib import Path

FOLDER = Path(__file__).parent
PLANS = ("basic", "family", "plus")
CITIES = ("Amberg", "Bellport", "Corwen", "Dunmore", "Eastvale", "Fairhaven")
OUTCOMES = ("leaves", "stays", "upgrades")
N_CUSTOMERS, N_NEW, WRONG, GAPS = 500, 100, 0.1, 0.05


def rule(customer):
    """Return what a customer will do."""
    if customer["support calls"] >= 5 and customer["plan"] != "family":
        return "leaves"
    if customer["months"] < 12 and customer["city"] in ("Corwen", "Fairhaven"):
        return "leaves"
    if customer["monthly bill"] > 45 and customer["plan"] == "basic":
        return "upgrades"
    if customer["age"] < 30 and customer["paperless"] == "yes" and customer["plan"] != "plus":
        return "upgrades"
    return "stays"


def draw(rng):
    """Draw a customer."""
    return {
        "age": 18 + int(rng.random() * 60),
        "plan": PLANS[int(rng.random() * 3)],
        "city": CITIES[int(rng.random() ** 1.5 * 6)],
        "months": 1 + int(rng.random() ** 2 * 120),
        "support calls": int(rng.random() ** 2 * 9),
        "monthly bill": round(15 + rng.random() * 50, 2),
        "paperless": "yes" if rng.random() < 0.6 else "no",
    }


def with_gaps(customer, rng):
    """Leave out some values."""
    return {name: "" if rng.random() < GAPS else value for name, value in customer.items()}


def labelled():
    """Return the customers, their outcomes as written down, and their right outcomes."""
    rng = random.Random(2019)
    customers, outcomes, right = [], [], []
    for number in range(N_CUSTOMERS):
        customer = draw(rng)
        right.append(rule(customer))
        others = [outcome for outcome in OUTCOMES if outcome != right[-1]]
        wrong = number % round(1 / WRONG) == 3  # every tenth
        outcomes.append(others[int(rng.random() * 2)] if wrong else right[-1])
        customers.append(with_gaps(customer, rng))
    return customers, outcomes, right


def new():
    """Return customers whose outcome is still to come; one lives in a city that no other lives in."""
    rng = random.Random(2020)
    customers = [with_gaps(draw(rng), rng) for _ in range(N_NEW)]
    customers[7]["city"] = "Glenrock"
    return customers


def write(path, rows):
    """Write rows to a csv file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    customers, outcomes, _ = labelled()
    rows = [{**customer, "outcome": outcome} for customer, outcome in zip(customers, outcomes, strict=True)]
    write(FOLDER / "customers.csv", rows)
    write(FOLDER / "new_customers.csv", new())
