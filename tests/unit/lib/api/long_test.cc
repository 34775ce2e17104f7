// Messages of any size as users of riomsg.h send them: two ports of one process.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

constexpr size_t kLarge = 1'000'000;

class RioMsgLong : public RioMsgPorts {
 protected:
  RioMsgLong() {
    EXPECT_RC(from_.accept_long(RIO_MSG_LONG_BYTES), 0);
    EXPECT_RC(to_.accept_long(RIO_MSG_LONG_BYTES), 0);
  }
  static std::string text(size_t size) {
    std::string made(size, 'x');
    for (size_t i = 0; i < size; ++i) {
      made[i] = static_cast<char>('a' + (i * 7 + i / 256) % 26);
    }
    return made;
  }
  rio_msg_request* begin(const std::string& bytes) {
    rio_msg_request* request = nullptr;
    EXPECT_EQ(from_.send_any(to_.self(), bytes_of(bytes), this, &request, nullptr), 0);
    return request;
  }
  bool receive(api::Message* out) {
    return until([&] {
      static_cast<void>(from_.wait(0));
      return to_.receive(out) == 1;
    });
  }
  bool ended(api::Context& of, rio_msg_request* request, rio_msg_done* done) {
    return until([&] {
      static_cast<void>((&of == &to_ ? from_ : to_).wait(0));
      return of.wait_done(request, 0, done) == 1;
    });
  }

  api::Context from_ = open_context(a_, 3);
  api::Context to_ = open_context(b_, 5);
};

TEST_F(RioMsgLong, ReportsEachCompletionOnce) {
  const std::string bytes = text(kLarge);
  std::string buffer(kLarge, ' ');
  rio_msg_request* const sent = begin(bytes);
  api::Message message;
  ASSERT_TRUE(receive(&message));
  EXPECT_TRUE(message.is_long());
  EXPECT_TRUE(message.bytes().empty());
  EXPECT_EQ(message.size(), kLarge);
  EXPECT_EQ(message.source(), from_.self());
  int user = 0;
  rio_msg_request* taken = nullptr;
  ASSERT_EQ(message.take(std::as_writable_bytes(std::span(buffer)), &user, &taken, nullptr), 0);
  rio_msg_done done{};
  ASSERT_TRUE(until([&] { return to_.next_done(&done); }));
  EXPECT_EQ(done.request, taken);
  EXPECT_EQ(done.user, &user);
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.is_take, 1u);
  EXPECT_EQ(done.size_bytes, kLarge);
  EXPECT_EQ(done.peer, from_.self());
  EXPECT_TRUE(buffer == bytes);
  ASSERT_TRUE(ended(from_, sent, &done));
  EXPECT_EQ(done.user, this);
  EXPECT_EQ(done.is_take, 0u);
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.peer, to_.self());
  EXPECT_FALSE(to_.next_done(&done));
  EXPECT_FALSE(from_.next_done(&done));
}

TEST_F(RioMsgLong, ShortOnesAreTakenToo) {
  rio_msg_done done{};
  ASSERT_TRUE(until([&] { return from_.send(to_.self(), bytes_of("brief")) == 0; }));
  EXPECT_EQ(from_.send_any(to_.self(), bytes_of("second"), this, nullptr, &done), 1);
  EXPECT_EQ(done.request, nullptr);
  EXPECT_EQ(done.status, 0);
  api::Message message;
  ASSERT_TRUE(receive(&message));
  EXPECT_FALSE(message.is_long());
  std::string buffer(5 + 3, ' ');
  const auto place = std::as_writable_bytes(std::span(buffer)).first(5);
  EXPECT_EQ(rio_msg_take(to_.get(), nullptr, nullptr, 1, nullptr, nullptr, nullptr), -EINVAL);
  ASSERT_EQ(message.take(place, nullptr, nullptr, &done), 1);
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(buffer, "brief   ");
  ASSERT_TRUE(receive(&message));
  ASSERT_EQ(message.take(place, nullptr, nullptr, &done), 1);
  EXPECT_EQ(done.status, -EMSGSIZE);
  EXPECT_EQ(done.size_bytes, 6u);
  EXPECT_EQ(buffer, "secon   ");
  message.release();
}

// The long message waits for its session; a short one behind it must not pass it.
TEST_F(RioMsgLong, AShortMessageDoesNotOvertakeALongOne) {
  const std::string bytes = text(kLarge);
  rio_msg_request* const first = begin(bytes);  // there is no session yet
  EXPECT_EQ(from_.send(to_.self(), bytes_of("behind")), -EAGAIN);
  ASSERT_TRUE(until([&] { return from_.send(to_.self(), bytes_of("behind")) == 0; }));
  api::Message message;
  ASSERT_TRUE(receive(&message));
  ASSERT_TRUE(message.is_long());
  message.release();
  api::Message behind;
  ASSERT_TRUE(receive(&behind));
  EXPECT_EQ(text_of(behind.bytes()), "behind");
  rio_msg_done done{};
  ASSERT_TRUE(ended(from_, first, &done));
  EXPECT_EQ(done.status, -ECONNREFUSED);
}

// A message waits for credit on a known route. A later message of the same context must not pass
// it, even if the context finds credit when it sends.
TEST_F(RioMsgLong, NothingOvertakesAMessageThatWaitsForCredit) {
  ASSERT_TRUE(until([&] { return from_.send(to_.self(), bytes_of("fill")) == 0; }));
  while (from_.send(to_.self(), bytes_of("fill")) == 0) {
  }
  const std::string waits = "waits";
  rio_msg_request* waiting = nullptr;
  ASSERT_EQ(from_.send_any(to_.self(), bytes_of(waits), this, &waiting, nullptr), 0);
  bool sent = false;
  std::string last = "fill";
  ASSERT_TRUE(until([&] {
    sent = sent || from_.send(to_.self(), bytes_of("behind")) == 0;
    for (api::Message message; to_.receive(&message) == 1 && last == "fill";) {
      last = text_of(message.bytes());
    }
    return last != "fill";
  }));
  EXPECT_EQ(last, "waits");
}

TEST_F(RioMsgLong, AWaitEndsWithACompletedRequest) {
  const std::string bytes = text(kLarge);
  rio_msg_request* const sent = begin(bytes);
  api::Message message;
  ASSERT_TRUE(receive(&message));
  std::string buffer(kLarge, ' ');
  ASSERT_EQ(message.take(std::as_writable_bytes(std::span(buffer)), nullptr, nullptr, nullptr), 0);
  rio_msg_done done{};
  ASSERT_TRUE(until([&] {
    static_cast<void>(to_.next_done(&done));
    return from_.wait(0) == 1;
  }));
  ASSERT_TRUE(from_.next_done(&done));
  EXPECT_EQ(done.request, sent);
  EXPECT_EQ(from_.wait(0), 0);
}

TEST_F(RioMsgLong, ClosesOnlyWhatIsNotHeld) {
  const std::string bytes = text(kLarge);
  rio_msg_request* const sent = begin(bytes);
  api::Message message;
  ASSERT_TRUE(receive(&message));
  EXPECT_EQ(rio_msg_context_close(to_.get()), -EBUSY);
  message = api::Message();
  rio_msg_done done{};
  ASSERT_TRUE(ended(from_, sent, &done));
  EXPECT_EQ(done.status, -ECONNREFUSED);
}

// The receiving context closes in the middle. The sender makes no progress meanwhile, so its send
// ends later.
TEST_F(RioMsgLong, ClosesBeforeItsLongMessage) {
  const std::string bytes = text(4 * kLarge);
  std::string buffer(bytes.size(), ' ');
  rio_msg_request* const sent = begin(bytes);
  api::Message message;
  ASSERT_TRUE(receive(&message));
  rio_msg_request* taken = nullptr;
  ASSERT_EQ(message.take(std::as_writable_bytes(std::span(buffer)), nullptr, &taken, nullptr), 0);
  to_ = api::Context();
  rio_msg_done done{};
  ASSERT_TRUE(until([&] { return from_.wait_done(sent, 0, &done) == 1; }));
  EXPECT_EQ(done.status, -ECANCELED);
  // Other contexts of the port still work.
  to_ = open_context(b_, 6);
  ASSERT_TRUE(until([&] { return from_.send(to_.self(), bytes_of("brief")) == 0; }));
  ASSERT_TRUE(receive(&message));
  EXPECT_EQ(text_of(message.bytes()), "brief");
  message.release();
}

TEST_F(RioMsgLong, AContextThatAcceptsNoLongMessagesSeesNone) {
  api::Context other = open_context(b_, 6);
  const std::string bytes = text(kLarge);
  rio_msg_request* request = nullptr;
  rio_msg_done done{};
  ASSERT_EQ(from_.send_any(other.self(), bytes_of(bytes), nullptr, &request, nullptr), 0);
  ASSERT_TRUE(ended(from_, request, &done));
  EXPECT_EQ(done.status, -ECONNREFUSED);
  const std::string parts = text(9000);
  const int rc = from_.send_any(other.self(), bytes_of(parts), nullptr, &request, nullptr);
  ASSERT_TRUE(rc == 1 || ended(from_, request, &done));
  ASSERT_TRUE(until([&] { return from_.send(other.self(), bytes_of("brief")) == 0; }));
  api::Message message;
  ASSERT_TRUE(until([&] { return other.receive(&message) == 1; }));
  EXPECT_EQ(text_of(message.bytes()), "brief");
}

TEST_F(RioMsgLong, CancelAndBadCalls) {
  const std::string bytes = text(kLarge);
  rio_msg_request* const request = begin(bytes);
  EXPECT_EQ(from_.cancel(request), 0);
  EXPECT_EQ(from_.cancel(request), -ENOENT);
  rio_msg_done done{};
  ASSERT_TRUE(from_.next_done(&done));
  EXPECT_EQ(done.request, request);
  EXPECT_EQ(done.status, -ECANCELED);
  EXPECT_EQ(rio_msg_send_any(from_.get(), to_.self(), "x", RIO_MSG_LONG_BYTES + 1, nullptr, nullptr,
                             nullptr),
            -EINVAL);
  EXPECT_EQ(rio_msg_send_any(from_.get(), to_.self(), nullptr, 1, nullptr, nullptr, nullptr),
            -EINVAL);
  EXPECT_EQ(rio_msg_send_any(from_.get(), rio_msg_address_of(2, RIO_MSG_CONTEXTS), "x", 1, nullptr,
                             nullptr, nullptr),
            -EINVAL);
  EXPECT_EQ(from_.send(rio_msg_address_of(0, RIO_MSG_CONTEXTS), bytes_of("x")), -EINVAL);
}

}  // namespace
}  // namespace rio::test
