// A process that forks: its child may close what it has inherited.
#include <sys/wait.h>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

class OfiFork : public OfiTest {
 protected:
  OfiFork() : OfiTest("shm") {}
};

TEST_F(OfiFork, AChildMayCloseInheritedObjects) {
  const Info wanted = hints();
  wanted->domain_attr->data_progress = FI_PROGRESS_AUTO;  // with a thread of the domain
  const Info info = get_info(wanted);
  OfiNode node(info, 0);
  const fi_addr_t self = node.insert(node);
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned kSeconds = 20;  // limit: if the child hangs, SIGALRM ends it
    alarm(kSeconds);
    node.close();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  uint64_t out = 7;
  uint64_t in = 0;
  ASSERT_EQ(fi_trecv(node.ep(), &in, sizeof(in), nullptr, self, 5, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(node.ep(), &out, sizeof(out), nullptr, self, 5, nullptr), 0);
  fi_cq_tagged_entry entry{};
  ssize_t got = -FI_EAGAIN;
  while ((got = fi_cq_read(node.rx(), &entry, 1)) == -FI_EAGAIN) {
  }
  EXPECT_EQ(got, 1);
  EXPECT_EQ(in, 7u);
}

}  // namespace
}  // namespace rio::test
