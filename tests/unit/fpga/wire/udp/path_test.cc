#include "fpga/wire/udp/path.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "fpga/wire/udp/datagram.hpp"
#include "tests/support/denied.hpp"

namespace rio::wire::udp {
namespace {

[[nodiscard]] Address at(const std::string& text) {
  Address out;
  EXPECT_EQ(Address::parse(text, false, &out), 0) << text;
  return out;
}

constexpr Path kGood = {0, 1500, 28};

void expect(const Verdict& verdict, bool possible, const std::vector<std::string>& words) {
  EXPECT_EQ(verdict.possible, possible) << verdict.text;
  EXPECT_EQ(verdict.text.empty(), words.empty()) << verdict.text;
  for (const std::string& word : words) {
    EXPECT_NE(verdict.text.find(word), std::string::npos) << verdict.text;
  }
}

TEST(UdpPath, MatchingAddressesAreAccepted) {
  expect(judge(at("10.0.0.1:1"), at("10.0.0.2:1"), kGood), true, {});
  expect(judge(at("127.0.0.1:1"), at("127.0.1.1:1"), {0, 65536, 28}), true, {});
  const Path here = {0, 65536, 28, true};
  expect(judge(at("127.0.0.1:1"), at("10.0.0.1:1"), here), true, {});
  expect(judge(at("[::1]:1"), at("[::1]:2"), {0, 65536, 48}), true, {});
}

TEST(UdpPath, ImpossibleAddressesAreNamed) {
  const Path none = {-EINVAL, 0, 28};
  expect(judge(at("127.0.1.1:7000"), at("10.0.0.2:7001"), none), false,
         {"127.0.1.1:7000 is a loopback address", "10.0.0.2:7001", "/etc/hosts"});
  expect(judge(at("127.0.1.1:7000"), at("10.0.0.2:7001"), {-ENETUNREACH, 0, 28}), false,
         {"127.0.1.1:7000", "10.0.0.2:7001"});
  expect(judge(at("[::1]:7000"), at("[fd00::2]:7001"), none), false, {"[::1]:7000 is a loopback"});
  expect(judge(at("10.0.0.1:7000"), at("[fd00::2]:7001"), kGood), false,
         {"10.0.0.1:7000", "[fd00::2]:7001", "versions of IP"});
}

TEST(UdpPath, DoubtfulAddressesAreNamed) {
  expect(judge(at("10.0.0.1:1"), at("127.0.1.1:7001"), kGood), true,
         {"127.0.1.1:7001 is a loopback address"});
  expect(judge(at("10.0.0.1:1"), at("10.1.0.2:7001"), {-ENETUNREACH, 0, 28}), true,
         {"10.1.0.2:7001", "Network is unreachable"});
}

TEST(UdpPath, ANarrowPathIsNamedWithItsMtuAndTheRemedy) {
  for (const uint32_t mtu : {68u, 576u, 1259u}) {
    const Path narrow = {0, mtu, 28};
    EXPECT_FALSE(narrow.is_wide());
    expect(judge(at("10.0.0.1:1"), at("10.0.0.2:7001"), narrow), true,
           {"10.0.0.2:7001", std::to_string(mtu) + " bytes", "needs 1260", "mtu 1260"});
  }
  EXPECT_TRUE((Path{0, 1260, 28}.is_wide()));
  EXPECT_TRUE((Path{0, 1280, 48}.is_wide()));
  EXPECT_FALSE((Path{0, 1279, 48}.is_wide()));
}

TEST(UdpPath, DatagramsAreAsLongAsThePathAllows) {
  EXPECT_EQ((Path{0, 1500, 28}.datagram_bytes()), 1472u);
  EXPECT_EQ((Path{0, 20, 28}.datagram_bytes()), kDatagramMin);
  EXPECT_EQ((Path{0, 65536, 28}.datagram_bytes()), kDatagramMax);
}

TEST(UdpPath, TheKernelReportsIt) {
  const Path self = path_between(at("127.0.0.1:1"), at("127.0.1.1:2"));
  EXPECT_EQ(self.error, 0);
  EXPECT_GT(self.mtu, 0u);
  EXPECT_LT(path_between(at("127.0.0.1:1"), at("192.0.2.1:2")).error, 0);
  EXPECT_LT(path_between(at("127.0.0.1:1"), at("[::1]:2")).error, 0);
  EXPECT_LT(path_between(at("192.0.2.1:1"), at("127.0.0.1:2")).error, 0);
}

// The kernel connects a socket at ::1 to an address of another machine without an error.
TEST(UdpPath, NoOtherMachineIsReachedFromLoopback) {
  for (const auto& [own, peer] : {std::pair{"[::1]:7000", "[2001:db8::2]:7001"},
                                  std::pair{"127.0.1.1:7000", "203.0.113.2:7001"}}) {
    const Path path = path_between(at(own), at(peer));
    EXPECT_FALSE(path.peer_is_here);
    expect(judge(at(own), at(peer), path), false,
           {std::string(own) + " is a loopback address", peer});
  }
}

TEST(UdpPath, AnotherAddressOfThisMachineIsReachedFromLoopback) {
  Address mine;
  ASSERT_EQ(Address::local("", 7001, &mine), 0);
  if (mine.is_loopback()) {
    GTEST_SKIP() << "no address but loopback";
  }
  const Address own = at(mine.family() == AF_INET ? "127.0.0.1:7000" : "[::1]:7000");
  const Path path = path_between(own, mine);
  EXPECT_TRUE(path.peer_is_here);
  expect(judge(own, mine, path), true, {});
}

/// Expects a report on a path by a child process that `lacks` something.
void expect_lack(bool (*lacks)(), const std::string& told) {
  const pid_t child = fork();
  if (child == 0) {
    const Address own = at("127.0.0.1:1");
    const Address peer = at("192.0.2.77:2");
    if (!lacks()) {
      _exit(1);
    }
    const Verdict verdict = judge(own, peer, path_between(own, peer));
    const bool right = verdict.possible && verdict.text.find(told) != std::string::npos &&
                       verdict.text.find("loopback address") == std::string::npos &&
                       verdict.text.find("routes") == std::string::npos;
    _exit(right ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << told;
}

TEST(UdpPath, ALackOfThisProcessIsReportedAsSuch) {
  expect_lack([] { return test::deny_call(SYS_socket, EPERM); },
              "socket: Operation not permitted; a seccomp filter");
  expect_lack(
      [] {
        const rlimit none{0, 0};
        return setrlimit(RLIMIT_NOFILE, &none) == 0;
      },
      "socket: Too many open files; raise the limit");
}

}  // namespace
}  // namespace rio::wire::udp
