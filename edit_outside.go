// This file lets a person write a text in an editor of their own. It owns the temporary file from its making to its end.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
)

// editorArgv gives the command that edits a file: VISUAL, else EDITOR, both with arguments if they have some, else what each system has.
func editorArgv(goos string, getenv func(string) string) ([]string, error) {
	line := cmp.Or(getenv("VISUAL"), getenv("EDITOR"))
	if line == "" && goos == "windows" {
		line = "notepad"
	}
	words, err := editorWords(cmp.Or(line, "vi"), goos)
	if err != nil || len(words) == 0 {
		return nil, usageError("set VISUAL or EDITOR to a command, such as vim or 'code --wait'", "the editor %s cannot be started", quoteClip(line))
	}
	return words, nil
}

// editorWords takes a command line apart. On Windows one that names a file as it stands is that file: paths there have spaces.
func editorWords(line, goos string) ([]string, error) {
	if goos == "windows" {
		if _, err := os.Stat(line); err == nil {
			return []string{line}, nil
		}
	}
	return splitWords(line)
}

// editOutside writes text to a file that only its owner can read, runs the person's editor on it in their terminal, and gives what the
// file holds then. The file is gone afterwards.
func editOutside(ctx context.Context, argv []string, text string, in io.Reader, out io.Writer) (_ string, err error) {
	f, err := os.CreateTemp("", "tai-*.md") // 0600
	if err != nil {
		return "", errorf("edit the text: %w", err)
	}
	defer func() {
		if gone := os.Remove(f.Name()); gone != nil && err == nil {
			err = errorf("remove the text's file: %w", gone)
		}
	}()
	_, err = io.WriteString(f, text)
	if err = joinErrors(err, f.Close()); err != nil {
		return "", errorf("edit the text: %w", err)
	}
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	if err := cmd.Run(); err != nil {
		return "", &cliError{Exit: exitFailed, Message: "the editor " + quoteClip(argv[0]) + " failed: " + err.Error(), Hint: "VISUAL and EDITOR name another; the text is as it was", err: err}
	}
	edited, err := os.Open(f.Name()) // anew: editors put another file in its place
	if err != nil {
		return "", errorf("read the text back: %w", err)
	}
	defer edited.Close()
	b, err := readBounded(ctx, edited, editPasteMax, "the text")
	if err != nil {
		return "", err
	}
	if len(b) > editPasteMax {
		return "", usageError("put it in a file and name the file", "the text has more than %d bytes", editPasteMax)
	}
	return string(cleanRunes(b)), nil
}
