// Hello is the smallest plugin: one tool that needs nothing.
package main
