// riomsg.h as an application uses it: two ports of one process on an emulated wire.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

class RioMsg : public RioMsgPorts {
 protected:
  bool send(api::Context& from, rio_msg_address to, const std::string& text) {
    return until([&] { return from.send(to, bytes_of(text)) == 0; });
  }
  bool receive(api::Context& to, api::Message* out) {
    return until([&] { return to.receive(out) == 1; });
  }
  bool done(api::Tag& tag, rio_tag_request* request, rio_tag_done* out, api::Tag& other) {
    return until(
        [&] { return tag.progress() == 0 && other.progress() == 0 && tag.test(request, out); });
  }
};

TEST_F(RioMsg, MessagesStayUntilTheyAreReleasedInAnyOrder) {
  api::Context from = open_context(a_, 3);
  api::Context to = open_context(b_, 5);
  EXPECT_EQ(to.self(), rio_msg_address_of(2, 5));
  std::vector<api::Message> held(4);
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(send(from, to.self(), std::string(i * 1000, static_cast<char>('a' + i))));
  }
  for (api::Message& message : held) {
    ASSERT_TRUE(receive(to, &message));
    EXPECT_EQ(message.source(), from.self());
  }
  EXPECT_EQ(rio_msg_context_close(to.get()), -EBUSY);
  held[2].release();
  held[0].release();
  EXPECT_EQ(text_of(held[1].bytes()), std::string(1000, 'b'));
  EXPECT_EQ(text_of(held[3].bytes()), std::string(3000, 'd'));
}

TEST_F(RioMsg, AMessageIsReleasedOnce) {
  api::Context from = open_context(a_, 3);
  rio_msg_context* to = nullptr;
  ASSERT_EQ(rio_msg_context_open(b_.get(), 5, &to), 0);
  ASSERT_TRUE(send(from, rio_msg_self(to), "once"));
  rio_msg_message message{};
  ASSERT_TRUE(until([&] { return rio_msg_receive(to, &message) == 1; }));
  rio_msg_release(to, &message);
  rio_msg_release(to, &message);  // refused: its buffer is not the context's any more
  EXPECT_EQ(rio_msg_context_close(to), 0);
}

// A receiver may hold nearly its whole share at once, also after it has received and released
// others.
TEST_F(RioMsg, AShareMayBeHeldAtAnyTime) {
  constexpr uint32_t kBefore = 20;
  constexpr uint32_t kHeld = 60;  // of a share of 62
  api::Context from = open_context(a_, 3);
  api::Context to = open_context(b_, 5);
  api::Message message;
  for (uint32_t i = 0; i < kBefore; ++i) {
    ASSERT_TRUE(send(from, to.self(), "released"));
    ASSERT_TRUE(receive(to, &message));
    message.release();
  }
  std::vector<api::Message> held(kHeld);
  for (api::Message& one : held) {
    // Bounded by the clock, not by turns: a sender without credit asks for it only now and then.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool sent = false;
    while (!sent && std::chrono::steady_clock::now() < end) {
      sent = send(from, to.self(), "held");
    }
    ASSERT_TRUE(sent);
    ASSERT_TRUE(receive(to, &one));
  }
}

// destID 0 with context 0, as a zeroed address has it: a likely mistake in a first program.
TEST_F(RioMsg, AFirstSendToNoAddressIsRefused) {
  api::Context from = open_context(a_, 3);
  EXPECT_EQ(from.send(RIO_MSG_CONTEXTS, bytes_of("x")), -EINVAL);
}

TEST_F(RioMsg, NullIsNoMemory) {
  api::Context from = open_context(a_, 3);
  const rio_msg_address to = rio_msg_address_of(2, 3);
  EXPECT_EQ(rio_msg_send(from.get(), to, nullptr, 1), -EINVAL);
  const iovec nowhere = {nullptr, 1};
  EXPECT_EQ(rio_msg_sendv(from.get(), to, &nowhere, 1), -EINVAL);
}

TEST_F(RioMsg, GathersAndRefusesWhatIsTooMuch) {
  api::Context from = open_context(a_, 0);
  api::Context to = open_context(b_, 0);
  std::string one(4000, 'x');
  std::string two(80, 'y');
  const std::vector<iovec> pieces = {{one.data(), one.size()}, {two.data(), two.size()}};
  ASSERT_TRUE(until([&] { return from.send(to.self(), pieces) == 0; }));
  api::Message message;
  ASSERT_TRUE(receive(to, &message));
  EXPECT_EQ(text_of(message.bytes()), one + two);
  EXPECT_EQ(from.send(to.self(), bytes_of(std::string(4081, 'z'))), -EMSGSIZE);
  const std::vector<iovec> more = {{one.data(), one.size()}, {one.data(), 81}};
  EXPECT_EQ(from.send(to.self(), more), -EMSGSIZE);
  const std::vector<iovec> wraps = {{one.data(), 8}, {one.data(), SIZE_MAX - 3}};  // 4 in all
  EXPECT_EQ(from.send(to.self(), wraps), -EMSGSIZE);
  EXPECT_EQ(rio_msg_sendv(from.get(), to.self(), pieces.data(), -1), -EINVAL);
  EXPECT_EQ(rio_msg_sendv(from.get(), to.self(), pieces.data(), RIO_MSG_PIECES + 1), -EINVAL);
  EXPECT_EQ(from.send(rio_msg_address_of(2, RIO_MSG_CONTEXTS), bytes_of("x")), -EINVAL);
}

TEST_F(RioMsg, ASendToAContextThatDoesNotExistIsRefused) {
  api::Context from = open_context(a_, 0);
  int rc = 0;
  ASSERT_TRUE(until([&] {
    rc = from.send(rio_msg_address_of(2, 9), bytes_of("x"));
    return rc != -EAGAIN;
  }));
  EXPECT_EQ(rc, -ECONNREFUSED);
  EXPECT_TRUE(a_.peer_up(2));
}

TEST_F(RioMsg, NumbersAndOptionsAreChecked) {
  api::Context taken = open_context(a_, 7);
  rio_msg_context* context = nullptr;
  rio_tag* tag = nullptr;
  EXPECT_EQ(rio_msg_context_open(a_.get(), 7, &context), -EBUSY);
  EXPECT_EQ(rio_msg_context_open(a_.get(), RIO_MSG_CONTEXTS, &context), -EINVAL);
  EXPECT_EQ(rio_tag_open(a_.get(), 7, &tag), -EBUSY);
  EXPECT_EQ(rio_tag_open(a_.get(), 65536 + 8, &tag), -EINVAL);
  EXPECT_EQ(rio_msg_close(a_.get()), -EBUSY);

  api::Port port;
  rio_msg_options options{};
  EXPECT_EQ(api::Port::open("emu:loop", options, &port), -EINVAL);  // no size
  options = api::msg_options();
  options.threads = 2;
  EXPECT_EQ(api::Port::open("emu:loop", options, &port), -EINVAL);
  options = api::msg_options();
  options.buffers = 3;
  EXPECT_EQ(api::Port::open("emu:loop", options, &port), -EINVAL);
  EXPECT_EQ(api::Port::open("nonsense", api::msg_options(), &port), -EINVAL);
  EXPECT_EQ(rio_msg_open(nullptr, nullptr, nullptr), -EINVAL);

  struct {
    rio_msg_options known;
    uint32_t more;
  } newer = {api::msg_options(), 1};
  newer.known.size_bytes = sizeof(newer);
  rio_msg_port* out = nullptr;
  EXPECT_EQ(rio_msg_open("emu:loop", &newer.known, &out), -E2BIG);
  newer.more = 0;
  EXPECT_EQ(rio_msg_open("emu:loop", &newer.known, &out), 0);
  EXPECT_EQ(rio_msg_close(out), 0);
  EXPECT_EQ(rio_msg_close(nullptr), 0);
}

TEST_F(RioMsg, StatsOfOlderAndNewerPrograms) {
  uint64_t more[sizeof(rio_msg_stats) / sizeof(uint64_t) + 1];
  more[sizeof(rio_msg_stats) / sizeof(uint64_t)] = 5;
  EXPECT_EQ(rio_msg_get_stats(a_.get(), reinterpret_cast<rio_msg_stats*>(more), sizeof(more)), 0);
  EXPECT_EQ(more[sizeof(rio_msg_stats) / sizeof(uint64_t)], 0u);
  EXPECT_EQ(rio_msg_get_stats(a_.get(), reinterpret_cast<rio_msg_stats*>(more), 7), -EINVAL);
}

TEST_F(RioMsg, TagsMatchAndTell) {
  api::Tag from = open_tag(a_, 1);
  api::Tag to = open_tag(b_, 1);
  int user = 0;
  std::string buffer(10, ' ');
  rio_tag_request* request = nullptr;
  rio_tag_done done{};
  ASSERT_EQ(to.receive({0x70, 0xF, RIO_TAG_ANY, 0}, std::as_writable_bytes(std::span(buffer)),
                       &user, &request, nullptr),
            0);
  const std::string text = "twelve bytes";
  rio_tag_request* sending = nullptr;
  const int sent = from.send(to.self(), 0x75, bytes_of(text), nullptr, &sending, nullptr);
  ASSERT_GE(sent, 0);
  ASSERT_TRUE(this->done(to, request, &done, from));
  EXPECT_EQ(done.user, &user);
  EXPECT_EQ(done.request, request);
  EXPECT_EQ(done.status, -EMSGSIZE);
  EXPECT_EQ(done.is_receive, 1u);
  EXPECT_EQ(done.bits, 0x75u);
  EXPECT_EQ(done.size_bytes, 12u);
  EXPECT_EQ(done.source, from.self());
  EXPECT_EQ(buffer, "twelve byt");
  if (sent == 0) {
    ASSERT_TRUE(until([&] { return from.next_done(&done); }));
    EXPECT_EQ(done.request, sending);
    EXPECT_EQ(done.is_receive, 0u);
  }
  EXPECT_FALSE(to.next_done(&done));  // told once
}

TEST_F(RioMsg, ProbesClaimsAndSynchronousSends) {
  api::Tag from = open_tag(a_, 1);
  api::Tag to = open_tag(b_, 1);
  const std::string text = "eight";
  rio_tag_request* sending = nullptr;
  ASSERT_EQ(from.send_sync(to.self(), 8, bytes_of(text), nullptr, &sending, nullptr), 0);
  const rio_tag_pattern any = {0, ~uint64_t{0}, RIO_TAG_ANY, 0};
  rio_tag_info info{};
  ASSERT_TRUE(until([&] { return from.progress() == 0 && to.probe(any, &info); }));
  EXPECT_EQ(info.bits, 8u);
  EXPECT_EQ(info.size_bytes, 5u);
  EXPECT_EQ(info.source, from.self());
  rio_tag_message* message = nullptr;
  ASSERT_TRUE(to.claim(any, &info, &message));
  EXPECT_FALSE(to.probe(any, &info));
  rio_tag_done done{};
  EXPECT_FALSE(from.test(sending, &done));
  std::string buffer(5, ' ');
  rio_tag_request* receiving = nullptr;
  const int rc = to.receive_claimed(message, std::as_writable_bytes(std::span(buffer)), nullptr,
                                    &receiving, &done);
  ASSERT_TRUE(rc == 1 || rc == 0) << rc;
  if (rc == 0) {  // its bytes stayed with the sender
    ASSERT_TRUE(this->done(to, receiving, &done, from));
  }
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(buffer, "eight");
  ASSERT_TRUE(this->done(from, sending, &done, to));
  EXPECT_EQ(done.status, 0);
}

TEST_F(RioMsg, CancelledReceivesComeBack) {
  api::Tag tag = open_tag(a_, 1);
  std::string buffer(5, ' ');
  rio_tag_request* request = nullptr;
  rio_tag_done done{};
  ASSERT_EQ(tag.receive({1, 0, RIO_TAG_ANY, 0}, std::as_writable_bytes(std::span(buffer)), nullptr,
                        &request, nullptr),
            0);
  EXPECT_EQ(tag.cancel(request), 0);
  EXPECT_EQ(tag.cancel(request), -ENOENT);
  ASSERT_TRUE(tag.next_done(&done));
  EXPECT_EQ(done.request, request);
  EXPECT_EQ(done.status, -ECANCELED);
}

TEST_F(RioMsg, BadTaggedSends) {
  api::Tag tag = open_tag(a_, 1);
  rio_tag_request* request = nullptr;
  EXPECT_EQ(rio_tag_send(tag.get(), RIO_TAG_ANY, 1, "x", 1, nullptr, &request, nullptr), -EINVAL);
  EXPECT_EQ(
      rio_tag_send(tag.get(), rio_msg_address_of(2, 64), 1, "x", 1, nullptr, &request, nullptr),
      -EINVAL);
  EXPECT_EQ(rio_tag_send(tag.get(), rio_msg_address_of(2, 1), 1, "x", RIO_TAG_BYTES + 1, nullptr,
                         &request, nullptr),
            -EINVAL);
}

TEST_F(RioMsg, TagsWithoutMemory) {
  api::Tag from = open_tag(a_, 1);
  api::Tag to = open_tag(b_, 1);
  rio_tag_request* request = nullptr;
  const rio_tag_pattern any = {0, ~uint64_t{0}, RIO_TAG_ANY, 0};
  for (const uint64_t size : {uint64_t{1}, uint64_t{100000}, uint64_t{1} << 24}) {
    EXPECT_EQ(rio_tag_send(from.get(), to.self(), 1, nullptr, size, nullptr, &request, nullptr),
              -EINVAL);
    EXPECT_EQ(
        rio_tag_send_sync(from.get(), to.self(), 1, nullptr, size, nullptr, &request, nullptr),
        -EINVAL);
    EXPECT_EQ(rio_tag_receive(to.get(), &any, nullptr, size, nullptr, &request, nullptr), -EINVAL);
  }
  // An empty message needs no memory, and a refused message holds up none behind it.
  ASSERT_GE(rio_tag_send(from.get(), to.self(), 2, nullptr, 0, nullptr, nullptr, nullptr), 0);
  rio_tag_info info{};
  rio_tag_message* message = nullptr;
  ASSERT_TRUE(until([&] { return from.progress() == 0 && to.claim(any, &info, &message); }));
  EXPECT_EQ(info.bits, 2u);
  rio_tag_done done{};
  EXPECT_EQ(rio_tag_receive_claimed(to.get(), message, nullptr, 8, nullptr, &request, &done),
            -EINVAL);
  EXPECT_EQ(rio_tag_receive_claimed(to.get(), message, nullptr, 0, nullptr, &request, &done), 1);
}

// Messages that are meant for a tagged endpoint are never shown to a plain context.
TEST_F(RioMsg, AContextShowsNothingOfTags) {
  api::Tag from = open_tag(a_, 1);
  api::Context own = open_context(a_, 2);
  api::Context to = open_context(b_, 1);
  const std::string text = "first";
  rio_tag_request* request = nullptr;
  ASSERT_EQ(from.send_sync(to.self(), 8, bytes_of(text), nullptr, &request, nullptr), 0);
  ASSERT_TRUE(until([&] { return from.progress() == 0 && b_.stats().received > 1; }));
  ASSERT_TRUE(send(own, to.self(), "second"));
  api::Message message;
  ASSERT_TRUE(receive(to, &message));
  EXPECT_EQ(text_of(message.bytes()), "second");
}

}  // namespace
}  // namespace rio::test
