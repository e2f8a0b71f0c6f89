package main_test

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestLinkerLeavesMethodsOut looks for what calls methods by names that are not constant: the linker then keeps every method of
// every type, which is a quarter of the program.
func TestLinkerLeavesMethodsOut(t *testing.T) {
	t.Parallel()
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", umbel).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(symbols, []byte(" main.main\n")) {
		t.Fatal("the program has no table of symbols")
	}
	if bytes.Contains(symbols, []byte("text/template.(*state).evalField")) {
		t.Error("the program executes templates of text/template; go build -ldflags=-dumpdep ./cmd/umbel tells why")
	}
}
