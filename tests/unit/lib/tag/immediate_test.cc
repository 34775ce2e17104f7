// Immediate data: eight bytes besides a message's own, with messages sent in each way.
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using tag::Immediate;
using tag::MessageInfo;
using tag::Pattern;
using tag::RecvRequest;
using tag::SendRequest;

// Sizes around the limits of one message, of several, and of those sent on request, with and
// without immediate data.
const uint64_t kSizes[] = {0,    1,    39,   40,   41,   47,   48,   49,    4063,  4064,  4065,
                           4071, 4072, 4073, 8119, 8127, 8135, 8136, 16384, 65536, 300001};
constexpr uint64_t kValue = 0x8070605040302010u;

class TagImmediate : public TagPair {
 protected:
  [[nodiscard]] Pattern from_a() { return {1, 0, a_.at()}; }

  /// a sends, alternately with and without immediate data.
  int send(SendRequest& request, const std::vector<uint8_t>& bytes, bool sync) {
    const Immediate immediate = {number_ % 2 != 0 ? kValue + number_ : 0, number_ % 2 != 0};
    return sync ? a_->send_sync(b_.at(), 1, bytes.data(), bytes.size(), request, immediate)
                : a_->send(b_.at(), 1, bytes.data(), bytes.size(), request, immediate);
  }
  void expect_right(const Immediate& immediate) const {
    EXPECT_EQ(immediate.there, number_ % 2 != 0);
    EXPECT_EQ(immediate.value, number_ % 2 != 0 ? kValue + number_ : 0);
  }
  void receive(const std::vector<uint8_t>& wanted, RecvRequest& receive, int begun,
               const std::vector<uint8_t>& buffer) {
    ASSERT_EQ(begun == 1 ? receive.status : wait(*b_, receive), 0);
    ASSERT_EQ(receive.length_bytes, wanted.size());
    ASSERT_TRUE(buffer == wanted);
    expect_right(receive.immediate);
  }
  void posted(uint64_t size, bool sync) {
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> buffer(size);
    RecvRequest request;
    const int begun = b_->receive(from_a(), buffer.data(), size, request);
    SendRequest sending;
    const int rc = send(sending, bytes, sync);
    receive(bytes, request, begun, buffer);
    sent(rc, sending);
    ++number_;
  }
  void unexpected(uint64_t size, bool sync, bool claims) {
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> buffer(size);
    SendRequest sending;
    const int rc = send(sending, bytes, sync);
    MessageInfo info{};
    ASSERT_TRUE(until([&] { return b_->probe(from_a(), &info); }));
    expect_right(info.immediate);
    info = {};
    tag::Message* const message = claims ? b_->claim(from_a(), &info) : nullptr;
    RecvRequest request;
    if (claims) {
      expect_right(info.immediate);
    }
    const int begun = claims ? b_->receive_claimed(*message, buffer.data(), size, request)
                             : b_->receive(from_a(), buffer.data(), size, request);
    receive(bytes, request, begun, buffer);
    sent(rc, sending);
    ++number_;
  }

  uint64_t number_ = 0;
};

TEST_F(TagImmediate, EachSizeAndWay) {
  for (const uint64_t size : kSizes) {
    for (const bool sync : {false, true}) {
      for (uint32_t turn = 0; turn < 3; ++turn) {
        SCOPED_TRACE(testing::Message() << size << " bytes, sync " << sync << ", " << turn);
        posted(size, sync);
        unexpected(size, sync, false);
        unexpected(size, sync, true);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// A sender without credit sends a request for each message, which carries the immediate data.
TEST_F(TagImmediate, BeyondTheCredit) {
  constexpr uint64_t kCount = 2000;
  std::vector<SendRequest> sending(kCount);
  std::vector<uint64_t> bytes(kCount);
  std::vector<int> begun(kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    bytes[i] = i;
    begun[i] = a_->send(b_.at(), 1, &bytes[i], sizeof(i), sending[i], {kValue ^ i, i % 3 != 0});
    ASSERT_GE(begun[i], 0);
  }
  work();
  for (uint64_t i = 0; i < kCount; ++i) {
    uint64_t got = 0;
    RecvRequest request;
    const int rc = b_->receive(from_a(), &got, sizeof(got), request);
    ASSERT_EQ(rc == 1 ? request.status : wait(*b_, request), 0);
    ASSERT_EQ(got, i);
    ASSERT_EQ(request.immediate.there, i % 3 != 0);
    ASSERT_TRUE(!request.immediate.there || request.immediate.value == (kValue ^ i));
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    sent(begun[i], sending[i]);
  }
}

}  // namespace
}  // namespace rio::test
