"""The compiled engine: draws, trees and the array work of the two filters."""
