// This file holds what tai calls itself on every wire and screen.
package main

// version is tai's own, in the form of semver.org.
const version = "0.1.0"
