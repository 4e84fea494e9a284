// The handlers of the checks that -fsanitize puts into a program: each writes where the
// program went wrong and what it did, and ends it. What they get is laid down by the
// compiler: a place in the source first, then what belongs to the kind of error.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct place {
  const char *file;
  uint32_t line, column;
};

struct type_mismatch {
  struct place place;
  const void *type;
  uint8_t alignment, kind; // the alignment's logarithm
};

__attribute__((noinline, noreturn)) static void end(const struct place *at, const char *what) {
  fflush(stdout);
  dprintf(2, "%s:%u:%u: runtime error: %s\n", at->file ? at->file : "?", at->line, at->column,
          what);
  abort();
}

#define HANDLER(name, parameters, what)                                                           \
  __attribute__((noinline)) void __ubsan_handle_##name##_abort parameters { end(at, what); }      \
  __attribute__((noinline)) void __ubsan_handle_##name parameters { end(at, what); }

HANDLER(add_overflow, (struct place * at, void *a, void *b), "signed integer overflow in an addition")
HANDLER(sub_overflow, (struct place * at, void *a, void *b), "signed integer overflow in a subtraction")
HANDLER(mul_overflow, (struct place * at, void *a, void *b), "signed integer overflow in a multiplication")
HANDLER(negate_overflow, (struct place * at, void *a), "signed integer overflow in a negation")
HANDLER(divrem_overflow, (struct place * at, void *a, void *b), "division by zero, or one that overflows")
HANDLER(shift_out_of_bounds, (struct place * at, void *a, void *b), "a shift by too many bits, or of a negative number")
HANDLER(out_of_bounds, (struct place * at, void *a), "an index is outside of its array")
HANDLER(local_out_of_bounds, (struct place * at), "an index is outside of its array")
HANDLER(vla_bound_not_positive, (struct place * at, void *a), "an array of a length that is not positive")
HANDLER(float_cast_overflow, (struct place * at, void *a), "a number that its new type can't hold")
HANDLER(load_invalid_value, (struct place * at, void *a), "a value that its type doesn't have")
HANDLER(implicit_conversion, (struct place * at, void *a, void *b), "a conversion that changes the value")
HANDLER(invalid_builtin, (struct place * at), "a bit count of zero")
HANDLER(nonnull_arg, (struct place * at), "a null pointer as an argument that must not be null")
HANDLER(nullability_arg, (struct place * at), "a null pointer as an argument that must not be null")
HANDLER(pointer_overflow, (struct place * at, void *a, void *b), "pointer arithmetic from or to a null pointer, or that overflows")
HANDLER(function_type_mismatch, (struct place * at, void *a), "a call of a function by another type")

// What is returned is null: the place of the return is the second argument.
HANDLER(nonnull_return_v1, (void *data, struct place * at), "a null pointer is returned that must not be null")
HANDLER(nullability_return_v1, (void *data, struct place * at), "a null pointer is returned that must not be null")

__attribute__((noinline)) void __ubsan_handle_builtin_unreachable(struct place *at) {
  end(at, "this place must not be reached");
}
__attribute__((noinline)) void __ubsan_handle_missing_return(struct place *at) {
  end(at, "the function ended without returning a value");
}

static void mismatch(const struct type_mismatch *at, uintptr_t pointer) {
  static const char *const whats[] = {"load of", "store to", "reference to", "member access in",
                                      "member call on"};
  static char text[100];
  snprintf(text, sizeof text, "%s a %s",
           at->kind < sizeof whats / sizeof *whats ? whats[at->kind] : "use of",
           pointer == 0 ? "null pointer" : "misaligned address");
  end(&at->place, text);
}
__attribute__((noinline)) void __ubsan_handle_type_mismatch_v1(struct type_mismatch *at, uintptr_t p) {
  mismatch(at, p);
}
__attribute__((noinline)) void __ubsan_handle_type_mismatch_v1_abort(struct type_mismatch *at, uintptr_t p) {
  mismatch(at, p);
}
