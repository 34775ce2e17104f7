// Messages without a tag, and what completion queues say of them.
#include <algorithm>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

class OfiPlain : public OfiPair {};

TEST_F(OfiPlain, EachCallSends) {
  const std::vector<uint8_t> bytes = pattern(1, 5000);
  std::vector<uint8_t> buffer(5000);
  uint32_t calls = 0;
  const auto arrives = [&](ssize_t sent, size_t size, bool tells, bool immediate) {
    SCOPED_TRACE(++calls);
    ASSERT_EQ(sent, 0);
    std::fill(buffer.begin(), buffer.end(), 0);
    ASSERT_EQ(fi_recv(b_.ep(), buffer.data(), buffer.size(), nullptr, to_a_, this), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
    EXPECT_EQ(entry.op_context, this);
    EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | (immediate ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_EQ(entry.data, immediate ? 77u : 0u);
    EXPECT_EQ(entry.len, size);
    EXPECT_EQ(source, to_a_);
    EXPECT_TRUE(
        std::equal(buffer.begin(), buffer.begin() + static_cast<int64_t>(size), bytes.begin()));
    if (tells) {
      expect_sent(&buffer, FI_MSG);
    }
  };
  auto* const data = const_cast<uint8_t*>(bytes.data());
  const iovec pieces[] = {{data, 100}, {data + 100, 4900}};
  fi_msg message{};
  message.msg_iov = pieces;
  message.iov_count = 2;
  message.addr = to_b_;
  message.context = &buffer;
  message.data = 77;
  fid_ep* const ep = a_.ep();
  arrives(fi_send(ep, data, 5000, nullptr, to_b_, &buffer), 5000, true, false);
  arrives(fi_senddata(ep, data, 10, nullptr, 77, to_b_, &buffer), 10, true, true);
  arrives(fi_sendv(ep, pieces, nullptr, 2, to_b_, &buffer), 5000, true, false);
  arrives(fi_sendmsg(ep, &message, 0), 5000, true, false);
  arrives(fi_sendmsg(ep, &message, FI_REMOTE_CQ_DATA), 5000, true, true);
  arrives(fi_inject(ep, data, 60, to_b_), 60, false, false);
  arrives(fi_injectdata(ep, data, 60, 77, to_b_), 60, false, true);
  a_.expect_silent();
}

class OfiMulti : public OfiPair {
 protected:
  static constexpr uint64_t kCaps = FI_TAGGED | FI_MSG | FI_SOURCE | FI_MULTI_RECV;

  explicit OfiMulti(uint64_t caps = kCaps) : OfiPair(caps) {}

  ssize_t post(void* context, size_t bytes) {
    const iovec piece = {buffer_.data(), bytes};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = context;
    return fi_recvmsg(b_.ep(), &message, FI_MULTI_RECV);
  }
  void send(uint8_t seed, size_t bytes) {
    const std::vector<uint8_t> data = pattern(seed, bytes);
    ASSERT_EQ(injected([&] { return fi_inject(a_.ep(), data.data(), bytes, to_b_); }), 0);
  }
  void expect(uint8_t seed, size_t at, size_t bytes, bool is_last) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(b_.rx(), &entry), 1);
    EXPECT_EQ(entry.op_context, this);
    EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | (is_last ? FI_MULTI_RECV : 0));
    EXPECT_EQ(entry.buf, buffer_.data() + at);
    ASSERT_EQ(entry.len, bytes);
    const std::vector<uint8_t> data = pattern(seed, bytes);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), static_cast<const uint8_t*>(entry.buf)));
  }
  /// Wait until all sends have arrived. None is received.
  void let_arrive(uint32_t turns = 1000) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      fi_cq_tagged_entry none[1];
      ASSERT_LE(fi_cq_read(a_.rx(), none, 0), 0);
      ASSERT_LE(fi_cq_read(b_.rx(), none, 0), 0);
    }
  }

  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(1000);
};

TEST_F(OfiMulti, MessagesFollowEachOther) {
  size_t least = 100;
  ASSERT_EQ(fi_setopt(&b_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)),
            0);
  ASSERT_EQ(post(this, 350), 0);
  send(1, 100);
  send(2, 0);
  send(3, 150);
  expect(1, 0, 100, false);
  expect(2, 100, 0, false);
  send(4, 1);
  expect(3, 100, 150, false);  // exactly the least is left
  expect(4, 250, 1, true);
}

TEST_F(OfiMulti, EarlierArrivalsAreTaken) {
  send(1, 300);
  send(2, 300);
  send(3, 300);
  let_arrive();
  ASSERT_EQ(post(this, 620), 0);
  expect(1, 0, 300, false);
  expect(2, 300, 300, true);
  b_.expect_silent();
  ASSERT_EQ(post(this, 620), 0);
  expect(3, 0, 300, false);
}

TEST_F(OfiMulti, ATooLongMessageGivesTheBufferBack) {
  ASSERT_EQ(post(this, 300), 0);
  send(1, 100);
  send(2, 250);
  expect(1, 0, 100, false);
  const fi_cq_err_entry error = next_error(b_.rx());
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.flags & FI_MULTI_RECV, FI_MULTI_RECV);
  EXPECT_EQ(error.len, 200u);
  EXPECT_EQ(error.olen, 50u);
}

TEST_F(OfiMulti, ItIsCancelledWithWhatIsLeft) {
  ASSERT_EQ(post(this, 300), 0);
  send(1, 100);
  expect(1, 0, 100, false);
  ASSERT_EQ(fi_cancel(&b_.ep()->fid, this), 0);
  const fi_cq_err_entry error = next_error(b_.rx());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.flags & FI_MULTI_RECV, FI_MULTI_RECV);
  EXPECT_EQ(error.len, 0u);
}

/// Long messages come in more parts than one look takes.
class OfiMultiInParts : public OfiMulti {
 protected:
  OfiMultiInParts() : OfiMulti((setenv("FI_RIO_BORDER", "4M", 1), kCaps)) {}
  ~OfiMultiInParts() override { unsetenv("FI_RIO_BORDER"); }
};

TEST_F(OfiMultiInParts, ItIsCancelledBehindAMessageThatLandsInIt) {
  buffer_.resize(1'000'000);
  ASSERT_EQ(post(this, buffer_.size()), 0);
  const std::vector<uint8_t> data = pattern(1, 250'000);
  ASSERT_EQ(fi_send(a_.ep(), data.data(), data.size(), nullptr, to_b_, nullptr), 0);
  // Some of its bytes are there, and none behind them is.
  for (uint64_t turn = 0; turn < kTurns && buffer_[1000] != data[1000]; ++turn) {
    fi_cq_tagged_entry none[1];
    ASSERT_LE(fi_cq_read(a_.rx(), none, 0), 0);
    ASSERT_LE(fi_cq_read(b_.rx(), none, 0), 0);
  }
  ASSERT_EQ(fi_cancel(&b_.ep()->fid, this), 0);
  fi_cq_tagged_entry entry{};
  const ssize_t rc = next(b_.rx(), &entry);
  if (rc == 1) {
    EXPECT_EQ(entry.len, data.size());
    EXPECT_EQ(entry.flags, FI_RECV | FI_MSG) << "the buffer comes back behind it";
  }
  const fi_cq_err_entry error = next_error(b_.rx());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.flags & FI_MULTI_RECV, FI_MULTI_RECV);
  EXPECT_EQ(error.len, 0u);
}

TEST_F(OfiMulti, OptionsAreChecked) {
  size_t value = 0;
  size_t bytes = sizeof(value);
  fid* const ep = &b_.ep()->fid;
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &bytes), 0);
  EXPECT_EQ(value, 64u);
  bytes = 1;
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &bytes), -FI_ETOOSMALL);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1), -FI_EINVAL);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof(value)),
            -FI_ENOPROTOOPT);
  const iovec pieces[2] = {{buffer_.data(), 100}, {buffer_.data(), 100}};
  fi_msg message{};
  message.msg_iov = pieces;
  message.iov_count = 2;
  message.addr = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_recvmsg(b_.ep(), &message, FI_MULTI_RECV), -FI_EINVAL);
}

TEST_F(OfiPlain, EachCallReceives) {
  std::vector<uint8_t> buffer(20);
  const iovec pieces[] = {{buffer.data(), 3}, {buffer.data() + 3, 17}};
  fi_msg message{};
  message.msg_iov = pieces;
  message.iov_count = 2;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &buffer;
  const auto post = [&](int call) {
    switch (call) {
      case 0:
        return fi_recv(b_.ep(), buffer.data(), 20, nullptr, FI_ADDR_UNSPEC, &buffer);
      case 1:
        return fi_recvv(b_.ep(), pieces, nullptr, 2, to_a_, &buffer);
      default:
        return fi_recvmsg(b_.ep(), &message, 0);
    }
  };
  for (int call = 0; call < 3; ++call) {
    std::fill(buffer.begin(), buffer.end(), 0);
    ASSERT_EQ(post(call), 0);
    ASSERT_EQ(injected([&] { return fi_inject(a_.ep(), "12345678901234567890", 20, to_b_); }), 0);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(b_.rx(), &entry), 1);
    EXPECT_EQ(entry.op_context, &buffer);
    EXPECT_EQ(std::string(buffer.begin(), buffer.end()), "12345678901234567890");
  }
}

// A message with a tag is not one without.
TEST_F(OfiPlain, TagsAreApart) {
  char text[8] = {};
  ASSERT_EQ(fi_recv(b_.ep(), text, 8, nullptr, FI_ADDR_UNSPEC, this), 0);
  ASSERT_EQ(injected([&] { return fi_tinject(a_.ep(), "tagged.", 8, to_b_, 0); }), 0);
  ASSERT_EQ(injected([&] { return fi_inject(a_.ep(), "plain..", 8, to_b_); }), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  EXPECT_EQ(entry.flags, FI_RECV | FI_MSG);
  EXPECT_STREQ(text, "plain..");
  b_.expect_silent();
}

/// Each format writes its fields, and not a byte more.
class OfiFormat : public OfiTest, public testing::WithParamInterface<fi_cq_format> {};

TEST_P(OfiFormat, HasItsEntries) {
  const Info info = get_info(hints());
  OfiNode own(info, 1, {GetParam()});
  const fi_addr_t to = own.insert(own);
  char text[2][8] = {};
  for (auto& each : text) {
    ASSERT_EQ(fi_trecv(own.ep(), each, 8, nullptr, FI_ADDR_UNSPEC, 5, 0, each), 0);
    ASSERT_EQ(fi_tinjectdata(own.ep(), "1234567", 7, 66, to, 5), 0);
  }
  const size_t bytes = GetParam() == FI_CQ_FORMAT_CONTEXT ? sizeof(fi_cq_entry)
                       : GetParam() == FI_CQ_FORMAT_MSG   ? sizeof(fi_cq_msg_entry)
                       : GetParam() == FI_CQ_FORMAT_DATA  ? sizeof(fi_cq_data_entry)
                                                          : sizeof(fi_cq_tagged_entry);
  for (auto& each : text) {
    std::vector<uint8_t> out(bytes + 8, 0xEE);
    ssize_t rc = -FI_EAGAIN;
    for (uint32_t turn = 0; rc == -FI_EAGAIN && turn < 50'000'000; ++turn) {
      rc = fi_cq_read(own.rx(), out.data(), 1);
    }
    ASSERT_EQ(rc, 1);
    EXPECT_TRUE(std::all_of(out.end() - 8, out.end(), [](uint8_t byte) { return byte == 0xEE; }));
    fi_cq_tagged_entry entry{};
    std::memcpy(&entry, out.data(), bytes);
    EXPECT_EQ(entry.op_context, each);
    if (bytes >= sizeof(fi_cq_msg_entry)) {
      EXPECT_EQ(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(entry.len, 7u);
    }
    if (bytes >= sizeof(fi_cq_data_entry)) {
      EXPECT_EQ(entry.data, 66u);
    }
    if (bytes == sizeof(fi_cq_tagged_entry)) {
      EXPECT_EQ(entry.tag, 5u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OfiFormat,
                         testing::Values(FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
                                         FI_CQ_FORMAT_TAGGED));

}  // namespace
}  // namespace rio::test
