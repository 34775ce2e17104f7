// A domain in a process that may not start threads, neither for progress nor for the card.
#include <sys/wait.h>

#include "tests/support/denied.hpp"
#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

constexpr int kCannotDeny = 77;

class OfiNoThreads : public OfiTest {
 protected:
  explicit OfiNoThreads(const std::string& kind = "emu") : OfiTest(kind) {
    std::filesystem::permissions(dir_.at(""), std::filesystem::perms::all);
  }
  static void expect_eagain() {
    const Info wanted = hints();
    wanted->domain_attr->data_progress = FI_PROGRESS_AUTO;
    const Info info = get_info(wanted);  // before the fork, since it loads the provider
    ASSERT_NE(info, nullptr);
    fid_fabric* fabric = nullptr;
    ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    const Held<fid_fabric> held(fabric);
    const pid_t pid = fork();
    if (pid == 0) {
      fid_domain* domain = nullptr;
      const int rc = deny_threads() ? fi_domain(fabric, info.get(), &domain, nullptr) : kCannotDeny;
      _exit(rc < 0 ? -rc : rc);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kCannotDeny) {
      GTEST_SKIP() << "this root may not become another user, and RLIMIT_NPROC does not bind it";
    }
    EXPECT_EQ(WEXITSTATUS(status), FI_EAGAIN);
  }
};

class OfiShmNoThreads : public OfiNoThreads {
 protected:
  OfiShmNoThreads() : OfiNoThreads("shm") {}
};

TEST_F(OfiNoThreads, TheDomainReportsTheLackOfThreads) {
  expect_eagain();
}

TEST_F(OfiShmNoThreads, TheDomainReportsTheLackOfThreads) {
  expect_eagain();
}

}  // namespace
}  // namespace rio::test
