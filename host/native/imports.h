// Replaces functions that the Node.js program imports from the C library by others.
#pragma once

// Has the program call `replacement` wherever it calls its import of that name. What other libraries of the process call stays as
// it is. Returns false if the program imports no such function.
bool ReplaceImport(const char* name, void* replacement);
