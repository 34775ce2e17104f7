// Delivery: messages of each size reach the right context, from the right sender, in order.
#include <map>
#include <numeric>

#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

std::string bytes_of(uint32_t size, uint32_t seed) {
  std::string text(size, '\0');
  for (uint32_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>((i * 7 + seed * 31 + (i >> 8)) & 0xFF);
  }
  return text;
}

class DeliveryTest : public Net {};

TEST_F(DeliveryTest, AMessageOfEachSizeArrivesAsItWas) {
  const Member a = member(port(1), 3);
  const Member b = member(port(2), 4);
  const Route there = route(a, 2, 4);
  for (uint32_t size = 0; size <= kPartBytesMax; ++size) {
    const std::string text = bytes_of(size, size);
    ASSERT_EQ(send(a, there, text), 0);
    ASSERT_EQ(receive(b), text) << size;
  }
  EXPECT_TRUE(b.inbox().empty());
}

TEST_F(DeliveryTest, TinyAndGatheredAreTheSameMessage) {
  const Member a = member(port(1), 3);
  const Member b = member(port(2), 4);
  const Route there = route(a, 2, 4);
  ASSERT_EQ(send(a, there, "open"), 0);
  ASSERT_EQ(receive(b), "open");
  for (uint32_t size = 0; size <= kTinyBytesMax; ++size) {
    std::string text = bytes_of(size, size);
    ASSERT_TRUE(work_until([&] {
      return a.port->send_tiny(there, text.data(), size) ||
             a.port->send(there, text.data(), size) == 0;
    }));
    const uint32_t half = size / 2;
    const iovec pieces[2] = {{text.data(), half}, {text.data() + half, size - half}};
    ASSERT_TRUE(work_until([&] { return a.port->send(there, pieces, 2, size) == 0; }));
    ASSERT_EQ(receive(b), text) << size;
    ASSERT_EQ(receive(b), text) << size;
  }
}

TEST_F(DeliveryTest, MoreThanAMessageHoldsIsRefused) {
  const Member a = member(port(1), 3);
  const Member b = member(port(2), 4);
  const Route there = route(a, 2, 4);
  ASSERT_EQ(send(a, there, "open"), 0);
  std::string text = bytes_of(kPartBytesMax + 1, 1);
  EXPECT_EQ(try_send(a, there, text), -EMSGSIZE);
  const iovec piece = {text.data(), text.size()};
  EXPECT_EQ(a.port->send(there, &piece, 1, static_cast<uint32_t>(text.size())), -EMSGSIZE);
}

TEST_F(DeliveryTest, NoContextGetsWhatIsForAnother) {
  MessagePort& one = port(1);
  MessagePort& two = port(2);
  constexpr std::array<uint16_t, 5> kIds = {0, 1, 31, 32, 63};
  std::vector<Member> senders;
  std::vector<Member> receivers;
  for (const uint16_t id : kIds) {
    senders.push_back(member(one, id));
    receivers.push_back(member(two, id));
  }
  for (uint32_t round = 0; round < 20; ++round) {
    for (const Member& from : senders) {
      for (const Member& to : receivers) {
        const std::string text = std::to_string(from.context->id()) + ">" +
                                 std::to_string(to.context->id()) + ":" + std::to_string(round);
        ASSERT_EQ(send(from, route(from, 2, to.context->id()), text), 0);
      }
    }
    for (const Member& to : receivers) {
      for (uint32_t i = 0; i < kIds.size(); ++i) {
        ASSERT_TRUE(work_until([&] { return !to.inbox().empty(); }));
        const Origin origin = to.inbox().origin(0);
        ASSERT_EQ(to.take(), std::to_string(origin.from) + ">" + std::to_string(to.context->id()) +
                                 ":" + std::to_string(round));
      }
      ASSERT_TRUE(to.inbox().empty());
    }
  }
}

TEST_F(DeliveryTest, SendersInterleaveAndEachKeepsItsOrder) {
  const Member to = member(port(1), 0);
  std::vector<Member> senders;
  for (uint32_t id = 2; id <= 5; ++id) {
    MessagePort& at = port(id);
    senders.push_back(member(at, 1));
    senders.push_back(member(at, 2));
  }
  constexpr uint32_t kEach = 300;
  std::vector<uint32_t> sent(senders.size());
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next;
  uint32_t received = 0;
  ASSERT_TRUE(work_until([&] {
    for (size_t i = 0; i < senders.size(); ++i) {
      if (sent[i] < kEach &&
          try_send(senders[i], route(senders[i], 1, 0), std::to_string(sent[i])) == 0) {
        ++sent[i];
      }
    }
    for (; !to.inbox().empty(); ++received) {
      const Origin origin = to.inbox().origin(0);
      uint32_t& expected = next[{origin.link->dest_id(), origin.from}];
      EXPECT_EQ(to.take(), std::to_string(expected));
      ++expected;
    }
    return received == kEach * senders.size();
  }));
  for (const auto& [who, count] : next) {
    EXPECT_EQ(count, kEach) << who.first << "/" << who.second;
  }
}

TEST_F(DeliveryTest, APortReachesItself) {
  MessagePort& one = port(1);
  const Member a = member(one, 0);
  const Member b = member(one, 1);
  const Route there = route(a, 1, 1);
  const Route back = route(b, 1, 0);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(send(a, there, "to b " + std::to_string(i)), 0);
    ASSERT_EQ(send(b, back, "to a " + std::to_string(i)), 0);
    ASSERT_EQ(receive(b), "to b " + std::to_string(i));
    ASSERT_EQ(receive(a), "to a " + std::to_string(i));
  }
}

TEST_F(DeliveryTest, ATakenMessageStaysUntilItIsGivenBack) {
  const Member a = member(port(1), 3);
  const Member b = member(port(2), 4);
  const Route there = route(a, 2, 4);
  std::vector<rio::msg::Delivery> taken;
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(send(a, there, "kept " + std::to_string(i)), 0);
    ASSERT_TRUE(work_until([&] { return !b.inbox().empty(); }));
    taken.push_back(b.context->take_oldest());
  }
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(send(a, there, "passing"), 0);
    ASSERT_EQ(receive(b), "passing");
  }
  for (uint32_t i = 0; i < taken.size(); ++i) {
    const iovec& bytes = taken[i].bytes;
    EXPECT_EQ(std::string(static_cast<const char*>(bytes.iov_base), bytes.iov_len),
              "kept " + std::to_string(i));
    EXPECT_EQ(taken[i].kind, Kind::kData);
    EXPECT_EQ(taken[i].origin.from, 3u);
    b.context->give_back(taken[i]);
  }
  EXPECT_GE(fill(a, there, 1000), 7u);
}

}  // namespace
}  // namespace rio::msg::test
