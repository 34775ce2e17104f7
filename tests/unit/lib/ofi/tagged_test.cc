// Messages with a tag, as MPI sends them.
#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kTag = 0x8000'0000'0000'0001u;
// Sizes around the limits of inject, of one message, of several, and of those sent on request.
const size_t kSizes[] = {0, 1, 8, 64, 4047, 4048, 4056, 4057, 4064, 4065, 16384, 100003};

class OfiTagged : public OfiPair {
 protected:
  void expect_received(fi_cq_tagged_entry& entry, size_t size, fi_addr_t source) {
    EXPECT_EQ(entry.op_context, this);
    EXPECT_EQ(entry.len, size);
    EXPECT_EQ(entry.tag, kTag);
    EXPECT_EQ(source, to_a_);
  }
  ssize_t peek(uint64_t flags, void* context) {
    fi_msg_tagged message{};
    message.addr = FI_ADDR_UNSPEC;
    message.tag = kTag;
    message.context = context;
    return fi_trecvmsg(b_.ep(), &message, flags);
  }
  /// Peeks until a message is there.
  void expect_found(uint64_t flags, void* context = nullptr) {
    context = context == nullptr ? this : context;
    for (ssize_t rc = -FI_EAVAIL; rc == -FI_EAVAIL;) {
      fi_cq_tagged_entry entry{};
      EXPECT_TRUE(fi_cq_read(a_.rx(), &entry, 1) == -FI_EAGAIN);  // makes progress
      ASSERT_EQ(peek(flags, context), 0);
      rc = next(b_.rx(), &entry);
      fi_cq_err_entry error{};
      ASSERT_TRUE(rc == 1 || fi_cq_readerr(b_.rx(), &error, 0) == 1);
    }
  }

  char bytes_ = 0;  // its address is a context
};

TEST_F(OfiTagged, MessagesOfEachSizeArrive) {
  for (const size_t size : kSizes) {
    for (const bool posted : {true, false}) {
      const std::vector<uint8_t> bytes = pattern(size + 1, size);
      std::vector<uint8_t> buffer(size + 1, 0xEE);
      if (posted) {
        ASSERT_EQ(fi_trecv(b_.ep(), buffer.data(), size, nullptr, to_a_, kTag, 0, this), 0);
      }
      ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), size, nullptr, to_b_, kTag, buffer.data()), 0);
      if (!posted) {
        b_.expect_silent();
        ASSERT_EQ(
            fi_trecv(b_.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, kTag - 1, 1, this), 0);
      }
      fi_cq_tagged_entry entry{};
      fi_addr_t source = 0;
      ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
      EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED);
      expect_received(entry, size, source);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
      EXPECT_EQ(buffer.back(), 0xEE);
      expect_sent(buffer.data());
    }
  }
}

TEST_F(OfiTagged, ImmediateDataArrives) {
  for (const size_t size : kSizes) {
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> buffer(size);
    ASSERT_EQ(fi_trecv(b_.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, kTag, 0, this), 0);
    ASSERT_EQ(fi_tsenddata(a_.ep(), bytes.data(), size, nullptr, ~size, to_b_, kTag, nullptr), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
    EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(entry.data, ~size);
    expect_received(entry, size, source);
    EXPECT_EQ(buffer, bytes);
    expect_sent(nullptr);
  }
}

TEST_F(OfiTagged, InjectedMessagesArrive) {
  for (size_t size = 0; size <= info_->tx_attr->inject_size; size = size * 3 + 1) {
    std::vector<uint8_t> bytes = pattern(size + 1, size);
    const std::vector<uint8_t> wanted = bytes;
    std::vector<uint8_t> buffer(size);
    ASSERT_EQ(injected([&] { return fi_tinjectdata(a_.ep(), bytes.data(), size, 7, to_b_, kTag); }),
              0);
    ASSERT_EQ(fi_tinject(a_.ep(), bytes.data(), size, to_b_, kTag), 0);
    std::fill(bytes.begin(), bytes.end(), 0xDD);  // the buffer is free again
    for (const uint64_t flags : {uint64_t{FI_REMOTE_CQ_DATA}, uint64_t{0}}) {
      ASSERT_EQ(fi_trecv(b_.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, kTag, 0, this), 0);
      fi_cq_tagged_entry entry{};
      fi_addr_t source = 0;
      ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
      EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | flags);
      expect_received(entry, size, source);
      EXPECT_EQ(buffer, wanted);
    }
  }
  const std::vector<uint8_t> more(info_->tx_attr->inject_size + 1);
  EXPECT_EQ(fi_tinject(a_.ep(), more.data(), more.size(), to_b_, kTag), -FI_EMSGSIZE);
  a_.expect_silent();  // they have no completions
}

// Open MPI's barriers send this way; afterwards its program may sleep in another call.
TEST_F(OfiTagged, AnInjectedMessageArrivesEvenIfItsSenderMakesNoMoreCalls) {
  ASSERT_EQ(fi_tinject(a_.ep(), "once", 5, to_b_, kTag), -FI_EAGAIN);
  ASSERT_EQ(injected([&] { return fi_tinject(a_.ep(), "once", 5, to_b_, kTag); }), 0);
  char text[8] = {};
  ASSERT_EQ(fi_trecv(b_.ep(), text, 8, nullptr, to_a_, kTag, 0, this), 0);
  fi_cq_tagged_entry entry{};
  ssize_t rc = -FI_EAGAIN;
  for (uint64_t turn = 0; turn < kTurns && rc == -FI_EAGAIN; ++turn) {
    rc = fi_cq_read(b_.rx(), &entry, 1);
  }
  ASSERT_EQ(rc, 1);
  EXPECT_STREQ(text, "once");
}

TEST_F(OfiTagged, PiecesAreGatheredAndScattered) {
  for (const size_t size : {size_t{0}, size_t{64}, size_t{5000}, size_t{100003}}) {
    const std::vector<uint8_t> bytes = pattern(3, size);
    std::vector<uint8_t> buffer(size);
    const auto cut = [&](const std::vector<uint8_t>& whole, size_t at) {
      auto* const first = const_cast<uint8_t*>(whole.data());
      return std::array<iovec, 3>{iovec{first, at}, iovec{first + at, 0},
                                  iovec{first + at, whole.size() - at}};
    };
    const auto to = cut(buffer, size / 5);
    const auto from = cut(bytes, size / 3);
    ASSERT_EQ(fi_trecvv(b_.ep(), to.data(), nullptr, 3, to_a_, kTag, 0, this), 0);
    ASSERT_EQ(fi_tsendv(a_.ep(), from.data(), nullptr, 3, to_b_, kTag, nullptr), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
    expect_received(entry, size, source);
    EXPECT_EQ(buffer, bytes);
    expect_sent(nullptr);
  }
  std::vector<iovec> many(info_->tx_attr->iov_limit + 1);
  EXPECT_EQ(fi_tsendv(a_.ep(), many.data(), nullptr, many.size(), to_b_, kTag, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_trecvv(b_.ep(), many.data(), nullptr, many.size(), to_a_, kTag, 0, nullptr),
            -FI_EINVAL);
}

TEST_F(OfiTagged, TruncationIsAnError) {
  for (const size_t size : {size_t{64}, size_t{10000}, size_t{100000}}) {
    const std::vector<uint8_t> bytes = pattern(3, size);
    std::vector<uint8_t> buffer(size, 0xEE);
    ASSERT_EQ(fi_trecv(b_.ep(), buffer.data(), size - 10, nullptr, to_a_, kTag, 0, this), 0);
    ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), size, nullptr, to_b_, kTag, nullptr), 0);
    const fi_cq_err_entry error = next_error(b_.rx());
    EXPECT_EQ(error.err, FI_ETRUNC);
    EXPECT_EQ(error.op_context, this);
    EXPECT_EQ(error.len, size - 10);
    EXPECT_EQ(error.olen, 10u);
    EXPECT_EQ(error.tag, kTag);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 10, buffer.begin()));
    EXPECT_EQ(buffer[size - 10], 0xEE);
    expect_sent(nullptr);
  }
}

TEST_F(OfiTagged, ACancelledReceiveCompletes) {
  uint8_t buffer[8] = {};
  ASSERT_EQ(fi_trecv(b_.ep(), buffer, 8, nullptr, to_a_, kTag, 0, this), 0);
  ASSERT_EQ(fi_cancel(&b_.ep()->fid, this), 0);
  const fi_cq_err_entry error = next_error(b_.rx());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, this);
  EXPECT_EQ(fi_cancel(&b_.ep()->fid, this), -FI_ENOENT);
  // The next message is for the next receive.
  ASSERT_EQ(injected([&] { return fi_tinject(a_.ep(), "seven b", 8, to_b_, kTag); }), 0);
  ASSERT_EQ(fi_trecv(b_.ep(), buffer, 8, nullptr, to_a_, kTag, 0, &buffer), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  EXPECT_EQ(entry.op_context, &buffer);
}

TEST_F(OfiTagged, PeekFindsAnArrivedMessage) {
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(peek(FI_PEEK, this), 0);
  EXPECT_EQ(next_error(b_.rx()).err, FI_ENOMSG);
  ASSERT_EQ(injected([&] { return fi_tinjectdata(a_.ep(), "four", 4, 9, to_b_, kTag); }), 0);
  bool found = false;
  for (uint64_t turn = 0; !found && turn < kTurns; ++turn) {
    a_.expect_silent();
    ASSERT_EQ(peek(FI_PEEK, this), 0);
    fi_addr_t source = 0;
    found = next(b_.rx(), &entry, &source) == 1;
    if (found) {
      expect_received(entry, 4, source);
      EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(entry.data, 9u);
    } else {
      fi_cq_err_entry error{};
      ASSERT_EQ(fi_cq_readerr(b_.rx(), &error, 0), 1);
    }
  }
  ASSERT_TRUE(found);
  // The message stays until it is claimed; then only the claim's context can receive it.
  ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, this), 0);
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  ASSERT_EQ(peek(FI_PEEK, &entry), 0);
  EXPECT_EQ(next_error(b_.rx()).err, FI_ENOMSG);
  char text[8] = {};
  iovec piece = {text, sizeof(text)};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.context = this;
  ASSERT_EQ(fi_trecvmsg(b_.ep(), &message, FI_CLAIM), 0);
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  EXPECT_EQ(entry.len, 4u);
  EXPECT_STREQ(text, "four");
  EXPECT_EQ(fi_trecvmsg(b_.ep(), &message, FI_CLAIM), -FI_EINVAL);  // the message is gone
}

TEST_F(OfiTagged, ADiscardedMessageIsGone) {
  for (const size_t size : {size_t{4}, size_t{9000}, size_t{100000}}) {
    const std::vector<uint8_t> bytes = pattern(size, size);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), size, nullptr, to_b_, kTag, nullptr), 0);
    for (ssize_t rc = -FI_EAVAIL; rc == -FI_EAVAIL;) {
      fi_cq_tagged_entry none{};
      EXPECT_EQ(fi_cq_read(a_.rx(), &none, 1), -FI_EAGAIN);  // makes progress
      ASSERT_EQ(peek(FI_PEEK | FI_DISCARD, this), 0);
      rc = next(b_.rx(), &entry);
      fi_cq_err_entry error{};
      ASSERT_TRUE(rc == 1 || fi_cq_readerr(b_.rx(), &error, 0) == 1);
    }
    EXPECT_EQ(entry.len, size);
    expect_sent(nullptr);
    ASSERT_EQ(peek(FI_PEEK, this), 0);
    EXPECT_EQ(next_error(b_.rx()).err, FI_ENOMSG);
    b_.expect_silent();
  }
}

// A message that is claimed and dropped has one completion, whatever its length; the next message
// is intact.
TEST_F(OfiTagged, AClaimedMessageThatIsDiscardedCompletes) {
  for (const size_t size : {size_t{0}, size_t{4}, size_t{9000}, size_t{100000}}) {
    const std::vector<uint8_t> bytes = pattern(size, size);
    ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), size, nullptr, to_b_, kTag, &bytes_), 0);
    expect_found(FI_PEEK | FI_CLAIM);
    ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, this), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
    EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED);
    expect_received(entry, 0, source);
    expect_sent(&bytes_);
    EXPECT_EQ(peek(FI_CLAIM | FI_DISCARD, this), -FI_EINVAL);  // the message is gone
    ASSERT_EQ(peek(FI_PEEK, this), 0);
    EXPECT_EQ(next_error(b_.rx()).err, FI_ENOMSG);
    b_.expect_silent();
  }
}

TEST_F(OfiTagged, AContextHoldsOneClaim) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(injected([&] { return fi_tinject(a_.ep(), "one", 4, to_b_, kTag); }), 0);
  }
  expect_found(FI_PEEK | FI_CLAIM);
  EXPECT_EQ(peek(FI_PEEK | FI_CLAIM, this), -FI_EINVAL);  // the first claim would be lost
  EXPECT_EQ(peek(FI_DISCARD, this), -FI_EINVAL);          // names no message
  expect_found(FI_PEEK, &bytes_);                         // the second is still there
  ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, this), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
}

TEST_F(OfiTagged, DeliveryCompleteWaitsForTheReceive) {
  iovec piece = {const_cast<char*>("12345678"), 8};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to_b_;
  message.tag = kTag;
  message.context = this;
  ASSERT_EQ(fi_tsendmsg(a_.ep(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION), 0);
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    a_.expect_silent();
    b_.expect_silent();
  }
  char text[8];
  ASSERT_EQ(fi_trecv(b_.ep(), text, 8, nullptr, to_a_, kTag, 0, this), 0);
  expect_sent(this);
}

TEST_F(OfiTagged, UninsertedPeersAreUnknownSources) {
  uint8_t buffer[8] = {};
  EXPECT_EQ(fi_tsend(a_.ep(), buffer, 8, nullptr, to_b_ + 1, kTag, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(a_.ep(), buffer, 8, to_b_ + 1, kTag), -FI_EINVAL);
  EXPECT_EQ(fi_trecv(b_.ep(), buffer, 8, nullptr, to_a_ + 1, kTag, 0, nullptr), -FI_EINVAL);
  b_.expect_silent();
}

/// Only operations that ask for a completion get one.
class OfiSelective : public OfiPair {
 protected:
  OfiSelective()
      : OfiPair(FI_TAGGED, {FI_CQ_FORMAT_TAGGED, FI_AV_MAP, FI_TRANSMIT | FI_SELECTIVE_COMPLETION,
                            FI_RECV | FI_SELECTIVE_COMPLETION}) {}
};

TEST_F(OfiSelective, OnlyOperationsThatAskForItComplete) {
  char text[5] = {};
  iovec piece = {text, 5};
  fi_msg_tagged receive{};
  receive.msg_iov = &piece;
  receive.iov_count = 1;
  receive.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_trecvmsg(b_.ep(), &receive, 0), 0);
  receive.context = this;
  ASSERT_EQ(fi_trecvmsg(b_.ep(), &receive, FI_COMPLETION), 0);
  ASSERT_EQ(fi_tsend(a_.ep(), "one..", 5, nullptr, to_b_, 0, &receive), 0);
  ASSERT_EQ(fi_tsend(a_.ep(), "two..", 5, nullptr, to_b_, 0, nullptr), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  EXPECT_EQ(entry.op_context, this);
  a_.expect_silent();
  iovec from = {const_cast<char*>("three"), 5};
  fi_msg_tagged send{};
  send.msg_iov = &from;
  send.iov_count = 1;
  send.addr = to_b_;
  ASSERT_EQ(fi_tsendmsg(a_.ep(), &send, 0), 0);
  a_.expect_silent();
  send.context = &send;
  ASSERT_EQ(fi_tsendmsg(a_.ep(), &send, FI_COMPLETION), 0);
  expect_sent(&send);
}

}  // namespace
}  // namespace rio::test
