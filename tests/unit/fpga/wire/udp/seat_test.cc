// A member's own address is compared with its peers' addresses when it joins: impossible pairs are
// refused, doubtful ones are reported, with the addresses.
#include "fpga/wire/udp/seat.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/wire/udp/wire_card.hpp"

namespace rio::wire::udp {
namespace {

class UdpSeat : public testing::Test {
 protected:
  [[nodiscard]] Seat at(uint32_t id, const std::string& members) const {
    std::ofstream(path_) << members;
    Seat out;
    out.fabric = "file";
    out.id = id;
    out.members = path_;
    return out;
  }
  /// Joins a fabric. @return the result of join(); `told` gets the error, or else the warning.
  [[nodiscard]] static int join(const Seat& seat, std::string* told) {
    std::unique_ptr<UdpWire> wire;
    const int rc = UdpWire::join(seat, &wire, told);
    for (std::string text; rc == 0 && wire->next_trouble(&text);) {
      *told += text + "\n";
    }
    return rc;
  }
  void expect(const Seat& seat, int rc, const std::vector<std::string>& words) const {
    std::string told;
    EXPECT_EQ(join(seat, &told), rc) << told;
    EXPECT_EQ(told.empty(), words.empty()) << told;
    for (const std::string& word : words) {
      EXPECT_NE(told.find(word), std::string::npos) << told;
    }
  }
  const std::string& path() const { return path_; }

  const test::TempDir folder_;

 private:
  const std::string path_ = folder_.at("members");
};

/// Finds a port that is free now, at an address of this machine.
[[nodiscard]] std::string free_at(const std::string& where) {
  std::unique_ptr<Socket> socket;
  Address at;
  EXPECT_EQ(Address::local(where, 0, &at), 0);
  EXPECT_EQ(Socket::open(at, &socket), 0);
  return socket->address().text();
}

/// Whether this machine has an IPv4 address in a network.
[[nodiscard]] bool is_in_a_network() {
  Address at;
  return Address::local("", 0, &at) == 0 && !at.is_loopback() && at.family() == AF_INET;
}

TEST_F(UdpSeat, OnLoopbackIsRefusedIfOthersAreInTheNetwork) {
  const std::string own = free_at("127.0.1.1");
  expect(at(1, "1 " + own + "\n2 192.0.2.9:7001\n"), -EADDRNOTAVAIL,
         {path(), own + " is a loopback address", "192.0.2.9:7001", "/etc/hosts"});
}

TEST_F(UdpSeat, OnLoopbackIsAcceptedIfOthersAreOnThisMachine) {
  std::string members = "1 " + free_at("127.0.1.1") + "\n2 127.0.0.1:9\n";
  members += is_in_a_network() ? "3 " + free_at("") + "\n" : "";
  expect(at(1, members), 0, {});
}

TEST_F(UdpSeat, APeerOnLoopbackIsNamed) {
  if (!is_in_a_network()) {
    GTEST_SKIP() << "no address but loopback";
  }
  expect(at(1, "1 " + free_at("") + "\n2 127.0.1.1:7001\n3 127.0.0.1:7002\n"), 0,
         {"127.0.1.1:7001 is a loopback address", "1 other members"});
}

TEST_F(UdpSeat, WithAnotherVersionOfIpThanAPeerIsRefused) {
  const std::string own = free_at("127.0.0.1");
  expect(at(1, "1 " + own + "\n2 [::1]:7001\n"), -EADDRNOTAVAIL,
         {own, "[::1]:7001", "versions of IP"});
}

TEST_F(UdpSeat, AtAnotherMachineIsRefused) {
  expect(at(1, "1 192.0.2.9:7000\n2 127.0.0.1:7001\n"), -EADDRNOTAVAIL,
         {"192.0.2.9:7000", "not of this machine"});
}

TEST_F(UdpSeat, AtAnAddressOfManyMachinesIsRefused) {
  for (const char* nowhere :
       {"0.0.0.0:7000", "[::]:7000", "224.0.0.1:7000", "255.255.255.255:7000", "[ff02::1]:7000"}) {
    expect(at(1, "1 127.0.0.1:7001\n2 " + std::string(nowhere) + "\n"), -EINVAL,
           {"line 2", nowhere});
  }
  for (const char* nowhere : {"0.0.0.0", "::", "224.0.0.1"}) {
    expect(seat(nowhere), -EADDRNOTAVAIL, {"bind=" + std::string(nowhere)});
  }
}

TEST_F(UdpSeat, WithoutAFileUnreachableAddressesAreExplained) {
  Card card(seat());
  uint32_t id = 0;
  EXPECT_EQ(card.wire->reach("[::1]:7001", &id), -EINVAL);
  EXPECT_NE(card.troubles().find("versions of IP"), std::string::npos);
  ASSERT_EQ(card.wire->reach("192.0.2.9:7001", &id), 0);
  model::Outbound* const way = card.wire->route(id);
  ASSERT_NE(way, nullptr);
  card.step();
  EXPECT_TRUE(way->gone) << "at once";
  const std::string told = card.troubles();
  EXPECT_NE(told.find("loopback address"), std::string::npos) << told;
}

constexpr int kSkipped = 77;

/// Runs `run` in network and mount namespaces of its own. @return its result; kSkipped: the system
/// does not allow it.
[[nodiscard]] int in_namespace(int mtu, const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    ifreq lo{};
    std::strcpy(lo.ifr_name, "lo");
    const bool alone = unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ||
                       unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0;
    const int any = socket(AF_INET, SOCK_DGRAM, 0);
    lo.ifr_mtu = mtu;
    const bool set = alone && ioctl(any, SIOCSIFMTU, &lo) == 0;
    lo.ifr_flags = IFF_UP;
    const bool up = set && ioctl(any, SIOCSIFFLAGS, &lo) == 0 &&
                    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    _exit(up ? run() : kSkipped);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(UdpSeat, ANameThatDebianMapsToLoopbackIsRefused) {
  const std::string hosts = folder_.at("hosts");
  std::ofstream(hosts) << "127.0.0.1 localhost\n127.0.1.1 node1.lab node1\n10.9.9.2 node2\n";
  const Seat node1 = at(1, "1 node1:7000\n2 node2:7000\n");
  const int rc = in_namespace(65536, [&] {
    if (mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
      return kSkipped;
    }
    expect(node1, -EADDRNOTAVAIL, {"127.0.1.1:7000 is a loopback address", "10.9.9.2:7000"});
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (rc == kSkipped) {
    GTEST_SKIP() << "no namespaces";
  }
  EXPECT_EQ(rc, 0);
}

TEST_F(UdpSeat, ANarrowPathIsNamedAndEndsCallsAtOnce) {
  const Seat one = at(1, "1 127.0.0.1:7000\n2 127.0.0.1:7001\n");
  const int rc = in_namespace(1000, [&] {
    expect(one, 0, {"127.0.0.1:7001", "1000 bytes", "needs 1260"});
    Card card(one);
    model::Outbound* const way = card.wire->route(2);
    card.step();
    EXPECT_TRUE(way != nullptr && way->gone);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (rc == kSkipped) {
    GTEST_SKIP() << "no namespaces";
  }
  EXPECT_EQ(rc, 0);
}

}  // namespace
}  // namespace rio::wire::udp
