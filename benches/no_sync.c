/* Answers syncs at once, for the program it is loaded into and not for the ones that it starts: what
 * is left of a trial's time when the time in syncs is taken out. */
#include <stdlib.h>

int fsync(int descriptor) { (void)descriptor; return 0; }
int fdatasync(int descriptor) { (void)descriptor; return 0; }

__attribute__((constructor)) static void not_for_children(void) { unsetenv("LD_PRELOAD"); }
