// What each C++ program is linked with: an exception that nobody catches ends the program
// with its type and its words, in place of leaving WebAssembly. The linker has the
// program's start call the function of this name.

#include <exception>

extern "C" int __real___main_void();

extern "C" int __wrap___main_void() {
  try {
    return __real___main_void();
  } catch (...) {
    std::terminate();
  }
}

// The tag by which exceptions are thrown, which each program defines once.
__asm__(".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n");
