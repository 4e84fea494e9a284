// What each C and C++ program is linked with beside the C library.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// There only in a program that prints by the C library.
#undef stdout
#pragma weak stdout

// A program starts in its working directory, and what it prints goes out line by line.
__attribute__((constructor(101))) void __rillbox_start(void) {
  const char *directory = getenv("PWD");
  if (directory == NULL || chdir(directory) != 0) chdir("/workspace");
  FILE *const *out = &stdout;
  if (out != NULL) setvbuf(*out, NULL, _IOLBF, 0);
}

// Writes what is still in buffers. It is called from outside after the program was cut
// off by a trap.
__attribute__((export_name("rillbox_flush"))) void __rillbox_flush(void) {
  FILE *const *out = &stdout;
  if (out != NULL) fflush(*out);
}
