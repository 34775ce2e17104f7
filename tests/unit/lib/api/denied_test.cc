// A process that may not make all system calls that a card of a fabric needs: a seccomp filter
// refuses one after another. The failing call returns the cause's error and logs it at once; a
// refusal must not look like a peer that does not answer.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>

#include "lib/api/riomsg.h"
#include "tests/support/denied.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kConnectMs = 60'000;  // never waited for

/// Effect of a refused system call on the program.
enum Outcome : uint8_t {
  kFails,   ///< the call fails with that errno, and a log line names the remedy
  kWorks,   ///< it works, slower or with less, and a log line says so
  kSilent,  ///< it works without the system call, and says nothing
};

struct Call {
  const char* name;
  std::initializer_list<long> numbers;
  Outcome early;  ///< refused before the port is opened
  Outcome late;   ///< refused afterwards, before the first message
};

const Call kCalls[] = {
    {"memfd_create", {SYS_memfd_create}, kFails, kFails},
    {"ftruncate", {SYS_ftruncate}, kFails, kFails},
    {"fallocate", {SYS_fallocate}, kFails, kFails},
    {"fstatfs", {SYS_fstatfs}, kFails, kFails},
    {"eventfd", {SYS_eventfd2}, kFails, kFails},
    {"epoll_create", {SYS_epoll_create1}, kFails, kSilent},
    {"epoll_ctl", {SYS_epoll_ctl}, kFails, kFails},
    {"epoll_wait", {SYS_epoll_wait, SYS_epoll_pwait}, kFails, kFails},
    {"getrandom", {SYS_getrandom}, kFails, kSilent},
    {"flock", {SYS_flock}, kFails, kSilent},
    {"mkdir", {SYS_mkdirat}, kFails, kSilent},
    {"open", {SYS_openat}, kFails, kSilent},
    {"socket", {SYS_socket}, kFails, kFails},
    {"bind", {SYS_bind}, kFails, kSilent},
    {"listen", {SYS_listen}, kFails, kSilent},
    {"connect", {SYS_connect}, kFails, kFails},
    {"sendmsg", {SYS_sendmsg}, kFails, kFails},
    {"recvmsg", {SYS_recvmsg}, kFails, kFails},
    {"getsockopt", {SYS_getsockopt}, kFails, kFails},
    {"pidfd_open", {SYS_pidfd_open}, kWorks, kWorks},
    {"process_vm_readv", {SYS_process_vm_readv}, kWorks, kWorks},
    {"membarrier", {SYS_membarrier}, kWorks, kSilent},
};

/// Send a message to destID 1. @return 0, or -errno of the refused step.
[[nodiscard]] int send_one(const std::function<bool()>& before_sending) {
  rio_msg_options options{};
  options.size_bytes = sizeof options;
  options.connect_ms = kConnectMs;
  options.sleeps = 1;
  rio_msg_port* port = nullptr;
  int rc = rio_msg_open("shm:denied,id=2", &options, &port);
  if (rc != 0) {
    return rc;
  }
  rio_msg_context* context = nullptr;
  rc = rio_msg_context_open(port, 0, &context);
  if (rc != 0 || !before_sending()) {
    return rc != 0 ? rc : -ENOTRECOVERABLE;
  }
  while ((rc = rio_msg_send(context, rio_msg_address_of(1, 0), "hello", 5)) == -EAGAIN) {
    if (const int waited = rio_msg_wait(context, 1000); waited < 0) {
      return waited;
    }
  }
  return rc;
}

/// A peer that answers no message: its presence is enough.
[[nodiscard]] int serve(const Pipe& ready, Pipe& end) {
  rio_msg_port* port = nullptr;
  rio_msg_context* context = nullptr;
  if (rio_msg_open("shm:denied,id=1", nullptr, &port) != 0 ||
      rio_msg_context_open(port, 0, &context) != 0) {
    return 1;
  }
  ready.tell();
  pollfd over{end.reader(), POLLIN, 0};
  while (poll(&over, 1, 0) == 0) {
    rio_msg_message message;
    if (rio_msg_receive(context, &message) == 1) {
      rio_msg_release(context, &message);
    }
  }
  return 0;
}

using Param = std::tuple<size_t, int, bool>;  // of kCalls, errno, late

class Denied : public Shm, public testing::WithParamInterface<Param> {};

TEST_P(Denied, IsToldAtOnce) {
  const Call& call = kCalls[std::get<0>(GetParam())];
  const int refused = std::get<1>(GetParam());
  const bool late = std::get<2>(GetParam());
  const Outcome expected = late ? call.late : call.early;
  const std::string text =
      std::strerror(refused) + std::string(expected == kFails ? "; a seccomp filter or" : "");
  Pipe ready;
  Pipe end;
  Child server([&] {
    end.close_writer();
    return serve(ready, end);
  });
  ready.close_writer();
  ASSERT_EQ(ready.wait(), 1);
  Child child([&] {
    const auto deny = [&] {
      bool denied = true;
      for (const long number : call.numbers) {
        denied = denied && deny_call(number, refused);
      }
      return denied;
    };
    LogLines log;
    if (!late && !deny()) {
      return 64;
    }
    const int rc = send_one([&] { return !late || deny(); });
    const bool right = expected == kFails ? rc == -refused : rc == 0;
    const bool told = expected == kSilent || wait_until([&] { return log.had(text); });
    if (!right || !told) {
      std::fprintf(stderr, "%s: %s; told: %s\n", call.name, std::strerror(-rc), log.last().c_str());
    }
    return (right ? 0 : 1) + (told ? 0 : 2);
  });
  EXPECT_EQ(child.exit_code(), 0) << "1: another error; 2: not told";
  end.close_writer();
  EXPECT_EQ(server.exit_code(), 0);
}

INSTANTIATE_TEST_SUITE_P(, Denied,
                         testing::Combine(testing::Range(size_t{0}, std::size(kCalls)),
                                          testing::Values(EPERM, ENOSYS), testing::Bool()),
                         [](const testing::TestParamInfo<Param>& each) {
                           return std::string(kCalls[std::get<0>(each.param)].name) +
                                  (std::get<1>(each.param) == EPERM ? "_EPERM" : "_ENOSYS") +
                                  (std::get<2>(each.param) ? "_late" : "");
                         });

// A card without a wire: nothing else draws random bytes before the context does.
TEST(DeniedOnTheCard, OfRandomBytesIsToldOnce) {
  Child child([] {
    const LogCapture log;
    rio_msg_port* port = nullptr;
    const bool right =
        deny_call(SYS_getrandom, EPERM) && rio_msg_open("emu:loop", nullptr, &port) == -EPERM;
    const bool told = LogCapture::one_line_with({"getrandom: Operation not permitted; a seccomp"});
    return (right ? 0 : 1) + (told ? 0 : 2);
  });
  EXPECT_EQ(child.exit_code(), 0) << "1: another error; 2: not told, or more than once";
}

}  // namespace
}  // namespace rio::test
