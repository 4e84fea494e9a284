// This file lets fork_linux.go declare functions of the runtime without a body.
