// Makes TLS contexts for ever in the thread that loads certificates: OpenSSL is in use when the process ends.
// The file REACHED is created when that begins.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int SSL_CTX_load_verify_locations(void* context, const char* file, const char* directory) {
  void* (*method)(void) = (void* (*)(void))dlsym(RTLD_NEXT, "TLS_method");
  void* (*make)(void*) = (void* (*)(void*))dlsym(RTLD_NEXT, "SSL_CTX_new");
  void (*discard)(void*) = (void (*)(void*))dlsym(RTLD_NEXT, "SSL_CTX_free");
  (void)context, (void)file, (void)directory;
  close(open(getenv("REACHED"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  for (;;) discard(make(method()));
}

// Runs after the handlers of atexit(): the thread meets what they have released.
__attribute__((destructor)) static void linger(void) { usleep(300000); }
