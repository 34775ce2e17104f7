// A message between emulated cards of several processes is copied up to a greater length if nothing
// else to its peer is under way.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kLoneBytes = 6 * 1024;
constexpr uint32_t kShare = 64;
constexpr uint32_t kParts = 2;  // of a message of kLoneBytes
constexpr uint64_t kStreamBytes = 4 * 1024;
constexpr uint64_t kProfileBytes = 2 * 1024;

class TagLone : public testing::Test {
 protected:
  TagLone() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~TagLone() override { unsetenv("RIO_RUNTIME_DIR"); }

  /// Waits until nothing from one node to the other is under way, and there is that much credit.
  static void rest(TagNode& from, TagNode& to, uint32_t credits = kParts) {
    EXPECT_TRUE(wait_until([&] {
      from.progress();
      to.progress();
      msg::Link* const link = from.port->known_link(to.port->dest_id());
      return link != nullptr && msg::MessagePort::is_idle(*link) &&
             link->out[0].available() >= credits;
    }));
  }
  /// Sends messages of `length_bytes`, one behind the other. @return how many of them were moved.
  static uint64_t moved(TagNode& from, TagNode& to, uint64_t length_bytes, size_t count = 1) {
    const uint64_t before = from->stats().large;
    const std::vector<uint8_t> bytes(length_bytes, 7);
    std::vector<std::vector<uint8_t>> came(count, std::vector<uint8_t>(length_bytes));
    std::vector<tag::RecvRequest> receives(count);
    std::vector<tag::SendRequest> sends(count);
    std::vector<tag::Request*> open;
    std::vector<tag::Request*> awaited;
    for (size_t i = 0; i < count; ++i) {
      const tag::Pattern pattern{.bits = 1, .source = from.at()};
      EXPECT_EQ(to->receive(pattern, came[i].data(), length_bytes, receives[i]), 0);
      awaited.push_back(&receives[i]);
    }
    for (tag::SendRequest& send : sends) {
      const int rc = from->send(to.at(), 1, bytes.data(), length_bytes, send);
      EXPECT_GE(rc, 0);
      if (rc == 0) {
        open.push_back(&send);
      }
    }
    EXPECT_TRUE(wait_until([&] {
      from.progress();
      to.progress();
      std::erase_if(open, [&](tag::Request* each) { return from->test(*each); });
      std::erase_if(awaited, [&](tag::Request* each) { return to->test(*each); });
      return open.empty() && awaited.empty();
    }));
    EXPECT_EQ(came.back(), bytes);
    return from->stats().large - before;
  }

  TempDir dir_;
};

TEST_F(TagLone, BetweenProcessesOnlyALoneMessageIsCopied) {
  TagNode a("shm:lone,id=1", 1, 1, kShare);
  TagNode b("shm:lone,id=2", 2, 1, kShare);
  EXPECT_EQ(moved(a, b, 1), 0u) << "the peers meet";
  EXPECT_EQ(moved(b, a, 1), 0u);
  rest(a, b);
  EXPECT_EQ(moved(a, b, kLoneBytes), 0u);
  rest(b, a);
  EXPECT_EQ(moved(b, a, kLoneBytes), 0u);
  rest(a, b);
  EXPECT_EQ(moved(a, b, kLoneBytes + 1), 1u);
  rest(a, b);
  EXPECT_EQ(moved(a, b, kLoneBytes, 3), 2u) << "those behind the first one";
  rest(a, b);
  EXPECT_EQ(moved(a, b, kLoneBytes), 0u);
}

TEST_F(TagLone, AStreamIsCopiedUpToALengthThatAProfileChanges) {
  for (const bool is_measured : {false, true}) {
    const std::string profile = is_measured ? dir_.at("profile") : "none";
    std::ofstream(dir_.at("profile")) << "eager_bytes = 2048\n";
    setenv("RIO_PROFILE", profile.c_str(), 1);
    TagNode a("shm:lone,id=1", 1, 1, kShare);
    TagNode b("shm:lone,id=2", 2, 1, kShare);
    EXPECT_EQ(moved(a, b, 1), 0u);
    rest(a, b);
    EXPECT_EQ(moved(a, b, kProfileBytes, 3), 0u);
    rest(a, b);
    EXPECT_EQ(moved(a, b, kStreamBytes, 3), is_measured ? 2u : 0u);
    rest(a, b);
    EXPECT_EQ(moved(a, b, kStreamBytes + 1, 3), 2u);
    rest(a, b);
    EXPECT_EQ(moved(a, b, kLoneBytes), 0u) << "a profile is about streams";
  }
  setenv("RIO_PROFILE", "none", 1);
}

TEST_F(TagLone, OtherCardsMoveIt) {
  constexpr uint64_t kUsualBytes = msg::Profile::kEagerUsual;
  for (const std::string card : {"emu:lone", "shm:lone,pull=0,id=", "shm:lone,exact=1,id="}) {
    const bool is_shm = card.front() == 's';
    TagNode a(is_shm ? card + "1" : card, 1, 1, kShare);
    TagNode b(is_shm ? card + "2" : card, 2, 1, kShare);
    EXPECT_EQ(moved(a, b, 1), 0u);
    rest(a, b);
    EXPECT_EQ(moved(a, b, kUsualBytes), 0u) << card;
    rest(a, b);
    EXPECT_EQ(moved(a, b, kUsualBytes + 1), 1u) << card;
  }
}

TEST_F(TagLone, ItNeedsCreditForAllItsParts) {
  TagNode a("shm:lone,id=1", 1);
  TagNode b("shm:lone,id=2", 2);  // gives 16 credits
  constexpr uint64_t kMostBytes = 17 * 4096;
  a.endpoints[0].reset();
  ASSERT_EQ(tag::TaggedContext::create(*a.port, 0, {.lone_bytes = kMostBytes}, &a.endpoints[0]), 0);
  EXPECT_EQ(moved(a, b, 1), 0u);
  rest(a, b, 1);
  EXPECT_EQ(moved(a, b, kMostBytes), 1u);
  EXPECT_EQ(a->stats().asked, 0u) << "it does not wait for credit first";
}

TEST_F(TagLone, ALengthThatTheUserGivesHolds) {
  constexpr uint64_t kGiven = 2048;
  TagNode a("shm:lone,id=1", 1, 1, kShare, kGiven);
  TagNode b("shm:lone,id=2", 2, 1, kShare, kGiven);
  EXPECT_EQ(moved(a, b, kGiven), 0u);
  rest(a, b);
  EXPECT_EQ(moved(a, b, kGiven + 1), 1u);
}

}  // namespace
}  // namespace rio::test
