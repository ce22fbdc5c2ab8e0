// This file joins the tools that change files, which share one changer, and those that list.
package main

// changingTools gives all tools over f that are not for reading alone, and the listing ones beside them.
func changingTools(f *fileChanger) []tool {
	tools := writeTools(f)
	tools = append(tools, patchTools(f)...)
	tools = append(tools, moveTools(f)...)
	tools = append(tools, undoTools(f)...)
	return append(tools, pathTools(f.workspace, f.now)...)
}
