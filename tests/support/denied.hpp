/// @file
/// Takes permissions away from a process for good: use it in forked children only.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace rio::test {

/// Becomes a user without privileges, if this is root. @return false: not allowed here.
[[nodiscard]] inline bool leave_root() {
  constexpr uid_t kNobody = 65534;
  return geteuid() != 0 ||
         (setresgid(kNobody, kNobody, kNobody) == 0 && setresuid(kNobody, kNobody, kNobody) == 0);
}

/// Forbids further threads and processes, by RLIMIT_NPROC, which does not limit root.
[[nodiscard]] inline bool deny_threads() {
  const rlimit none{0, 0};
  return leave_root() && setrlimit(RLIMIT_NPROC, &none) == 0;
}

/// Makes a system call fail with `error` in all threads of the process. @param number SYS_...
[[nodiscard]] inline bool deny_call(long number, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/// Hides /proc. @return false: this process may not have a mount namespace of its own.
[[nodiscard]] inline bool hide_proc() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
}

}  // namespace rio::test
