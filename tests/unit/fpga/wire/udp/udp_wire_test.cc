// Members of a fabric in this process, over loopback. Nothing here depends on time: waits are
// bounded by a number of steps that a working wire never needs.
#include "fpga/wire/udp/udp_wire.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/fpga/wire/udp/free_port.hpp"
#include "tests/unit/fpga/wire/udp/wire_card.hpp"

namespace rio::wire::udp {
namespace {

using model::Outbound;

void talk(const Seat& left, const Seat& right) {
  Card a(left);
  Card b(right);
  const uint32_t to_b = a.find(b);
  ASSERT_TRUE(both_until(a, b, [&] { return a.send(to_b, "hello"); }));
  ASSERT_TRUE(both_until(a, b, [&] { return !b.got.empty(); }));
  EXPECT_EQ(b.got, std::vector<std::string>{"hello"});
  ASSERT_EQ(b.changes.size(), 1u);
  EXPECT_TRUE(b.changes[0].here);
  EXPECT_EQ(b.changes[0].dest_id, b.find(a));
  ASSERT_TRUE(both_until(a, b, [&] { return b.send(b.find(a), std::string(4096, 'x')); }));
  ASSERT_TRUE(both_until(a, b, [&] { return !a.got.empty(); }));
  EXPECT_TRUE(a.got == std::vector<std::string>{std::string(4096, 'x')});
}

TEST(UdpWire, CarriesFramesOverBothVersions) {
  talk(seat(), seat());
  talk(seat("::1"), seat("::1"));
}

TEST(UdpWire, CarriesFramesSealed) {
  Seat sealed = seat();
  sealed.key = "0123456789abcdef";
  talk(sealed, sealed);
}

TEST(UdpWire, BothMembersAgreeWhichIsTheLower) {
  Card a(seat());
  Card b(seat());
  const uint32_t to_b = a.find(b);
  const uint32_t to_a = b.find(a);
  EXPECT_NE(a.wire->first_id() < to_b, b.wire->first_id() < to_a);
  EXPECT_EQ(a.find(b), to_b);
  EXPECT_EQ(a.find(a), a.wire->first_id());
}

TEST(UdpWire, BothMayCallAtOnce) {
  Card a(seat());
  Card b(seat());
  const uint32_t to_b = a.find(b);
  const uint32_t to_a = b.find(a);
  bool a_sent = false;
  bool b_sent = false;
  ASSERT_TRUE(both_until(a, b, [&] {
    a_sent = a_sent || a.send(to_b, "to b");
    b_sent = b_sent || b.send(to_a, "to a");
    return !a.got.empty() && !b.got.empty();
  }));
  EXPECT_EQ(a.got, std::vector<std::string>{"to a"});
  EXPECT_EQ(b.got, std::vector<std::string>{"to b"});
  EXPECT_EQ(a.changes.size(), 1u);
  EXPECT_EQ(b.changes.size(), 1u);
}

TEST(UdpWire, NothingIsLostOnABadPath) {
  Seat bad = seat();
  bad.key = "0123456789abcdef";
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    bad.faults = {seed, 0.2};
    Card a(bad);
    bad.faults.seed += 100;
    Card b(bad);
    const uint32_t to_b = a.find(b);
    std::vector<std::string> sent;
    for (int i = 0; i < 300; ++i) {
      sent.push_back(std::string(static_cast<size_t>(i) * 13, static_cast<char>(i)));
    }
    size_t next = 0;
    ASSERT_TRUE(both_until(a, b, [&] {
      next += next < sent.size() && a.send(to_b, sent[next]) ? 1u : 0u;
      return b.got.size() == sent.size();
    })) << b.got.size();
    EXPECT_TRUE(b.got == sent);
  }
}

TEST(UdpWire, StrangersAreRefusedAndNamed) {
  struct Case {
    Seat stranger;
    const char* here;   // report of the refused member
    const char* there;  // report of the refusing member
  };
  Seat keyed = seat();
  keyed.key = "0123456789abcdef";
  Seat other_key = keyed;
  other_key.key = "0123456789abcdeX";
  Seat other_fabric = keyed;
  other_fabric.fabric = "other";
  const std::vector<Case> cases = {{seat(), "", "another RIO_UDP_KEY"},
                                   {other_key, "", "another RIO_UDP_KEY"},
                                   {other_fabric, "is in another fabric", ""}};
  for (const Case& each : cases) {
    Card home(keyed);
    Card stranger(each.stranger);
    const uint32_t to = stranger.find(home);
    EXPECT_NE(stranger.wire->route(to), nullptr);
    std::string here;
    std::string there;
    ASSERT_TRUE(both_until(home, stranger,
                           [&] {
                             here += stranger.troubles();
                             there += home.troubles();
                             return here.find(each.here) != std::string::npos &&
                                    there.find(each.there) != std::string::npos;
                           }))
        << here << there;
    EXPECT_TRUE(home.changes.empty());
    EXPECT_TRUE(home.got.empty());
  }
}

TEST(UdpWire, ALeavingMembersFramesStillArrive) {
  Card a(seat());
  auto b = std::make_unique<Card>(seat());
  const uint32_t to_b = a.find(*b);
  const uint32_t to_a = b->find(a);
  ASSERT_TRUE(both_until(a, *b, [&] { return a.send(to_b, "hello"); }));
  ASSERT_TRUE(both_until(a, *b, [&] { return !b->got.empty(); }));
  ASSERT_TRUE(b->send(to_a, "last words"));
  std::thread leaves([&] { b.reset(); });  // waits until they have arrived
  ASSERT_TRUE(both_until(a, a, [&] { return a.changes.size() == 2; }));
  leaves.join();
  EXPECT_EQ(a.got, std::vector<std::string>{"last words"});
  EXPECT_FALSE(a.changes[1].here);
  EXPECT_EQ(a.changes[1].dest_id, to_b);
}

TEST(UdpWire, TheWayToAMissingMemberEndsSoon) {
  Card a(seat());
  uint32_t to = 0;
  ASSERT_EQ(a.wire->reach("127.0.0.1:9", &to), 0);  // the discard port: no member is there
  Outbound* const way = a.wire->route(to);
  ASSERT_NE(way, nullptr);
  ASSERT_TRUE(both_until(a, a, [&] { return way->gone; }));
  ASSERT_EQ(a.changes.size(), 1u);
  EXPECT_FALSE(a.changes[0].here);
  EXPECT_EQ(a.changes[0].times, 0u);
}

TEST(UdpWire, ImpossibleAddressesAreRefused) {
  Card a(seat());
  uint32_t id = 77;
  for (const char* text : {"", "host:7000", "127.0.0.1", "[::1]:7000", "127.0.0.1:0"}) {
    EXPECT_EQ(a.wire->reach(text, &id), -EINVAL) << text;
  }
  EXPECT_EQ(id, 77u);
  EXPECT_EQ(a.wire->route(4), nullptr);
}

TEST(UdpWire, AMemberHearsItself) {
  Card a(seat());
  ASSERT_TRUE(a.send(a.wire->first_id(), "me"));
  a.step();
  EXPECT_EQ(a.got, std::vector<std::string>{"me"});
}

TEST(UdpWire, DestIdsLimitTheMembers) {
  Card a(seat());
  uint32_t id = 0;
  int rc = 0;
  std::vector<uint32_t> ids;
  for (uint32_t port = 1; port < 5000 && rc == 0; ++port) {
    rc = a.wire->reach("127.0.0.2:" + std::to_string(port), &id);
    ids.push_back(id);
  }
  EXPECT_EQ(rc, -ENOSPC);
  EXPECT_GT(ids.size(), 1000u);
  EXPECT_LE(ids.back(), 0xFFFFu);
}

/// A fabric with a members file.
class UdpMembers : public testing::Test {
 protected:
  ~UdpMembers() override { unlink(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  [[nodiscard]] Seat at(uint32_t id) const {
    Seat out;
    out.fabric = "file";
    out.id = id;
    out.members = path_;
    return out;
  }
  static std::string free_address() { return "127.0.0.1:" + std::to_string(free_port()); }
  const std::string path_ = testing::TempDir() + "udp-members-" + std::to_string(getpid());
};

TEST_F(UdpMembers, GetTheDestIdsOfTheFile) {
  write("1 " + free_address() + "\n9 " + free_address() + "\n");
  Card one(at(1));
  Card nine(at(9));
  ASSERT_TRUE(both_until(one, nine, [&] { return one.send(9, "to nine"); }));
  ASSERT_TRUE(both_until(one, nine, [&] { return !nine.got.empty(); }));
  EXPECT_EQ(nine.got, std::vector<std::string>{"to nine"});
  EXPECT_EQ(nine.changes.at(0).dest_id, 1u);
}

TEST_F(UdpMembers, OutsideTheFileAreRefused) {
  write("1 " + free_address() + "\n");
  Card one(at(1));
  Seat stranger = seat();
  stranger.fabric = "file";
  Card other(stranger);
  const uint32_t to = other.find(one);
  EXPECT_NE(other.wire->route(to), nullptr);
  std::string heard;
  ASSERT_TRUE(both_until(one, other, [&] {
    heard += other.troubles();
    return heard.find("members file") != std::string::npos;
  }));
  EXPECT_TRUE(one.changes.empty());
}

TEST_F(UdpMembers, WithDifferentFilesAreNoticed) {
  const std::string first = free_address();
  const std::string second = free_address();
  write("1 " + first + "\n2 " + second + "\n");
  Card one(at(1));
  write("3 " + first + "\n2 " + second + "\n");
  Card two(at(2));
  EXPECT_NE(one.wire->route(2), nullptr);
  std::string told;
  ASSERT_TRUE(both_until(one, two, [&] {
    told += two.troubles() + one.troubles();
    return told.find("give all machines the same file") != std::string::npos;
  })) << told;
  EXPECT_TRUE(two.got.empty());
}

TEST_F(UdpMembers, WithImpossibleSeatsAreRefused) {
  const std::string port = free_address();
  write("1 " + port + "\n");
  std::unique_ptr<UdpWire> wire;
  std::string error;
  EXPECT_EQ(UdpWire::join(at(2), &wire, &error), -EINVAL);
  EXPECT_NE(error.find("no line for destID 2"), std::string::npos) << error;
  Seat no_id = at(0);
  EXPECT_EQ(UdpWire::join(no_id, &wire, &error), -EINVAL);
  Card one(at(1));
  EXPECT_EQ(UdpWire::join(at(1), &wire, &error), -EADDRINUSE);
  EXPECT_NE(error.find(port), std::string::npos) << error;
  Seat key = seat();
  key.key = "short";
  EXPECT_EQ(UdpWire::join(key, &wire, &error), -EINVAL);
  EXPECT_NE(error.find("RIO_UDP_KEY"), std::string::npos) << error;
  EXPECT_EQ(UdpWire::join(seat("no-such-interface"), &wire, &error), -EADDRNOTAVAIL);
}

}  // namespace
}  // namespace rio::wire::udp
