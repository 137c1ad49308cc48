// Replaces functions that the Node.js program, or a library, imports from the C library by others.
#pragma once

// Has the program call `replacement` wherever it calls its import of that name; or, if `library` is there, the libraries whose
// file names begin with that. What others of the process call stays as it is. Returns false if they import no such function.
bool ReplaceImport(const char* library, const char* name, void* replacement);
