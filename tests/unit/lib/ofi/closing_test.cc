// Endpoints that close while peers wait for them, and new endpoints that get their numbers.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kKey = 5;
constexpr int kPatienceMs = 60'000;

class OfiClosing : public OfiPair {
 protected:
  OfiClosing() : OfiPair(FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_TAGGED) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(b_.domain(), memory_.data(), memory_.size(),
                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &mr, nullptr),
              0);
    region_.reset(mr);
  }

  /// Opens another endpoint in a node's domain, on the node's queues. @param counter of peers'
  /// accesses, or null.
  [[nodiscard]] Held<fid_ep> open(OfiNode& node, fid_cntr* counter = nullptr) const {
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_endpoint(node.domain(), info_.get(), &ep, nullptr), 0);
    Held<fid_ep> held(ep);
    EXPECT_EQ(fi_ep_bind(ep, &node.av()->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &node.tx()->fid, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_ep_bind(ep, &node.rx()->fid, FI_RECV), 0);
    if (counter != nullptr) {
      EXPECT_EQ(fi_ep_bind(ep, &counter->fid, FI_REMOTE_READ | FI_REMOTE_WRITE), 0);
    }
    EXPECT_EQ(fi_enable(ep), 0);
    return held;
  }
  [[nodiscard]] static Held<fid_cntr> open_counter(OfiNode& node) {
    fi_cntr_attr attr{};
    fid_cntr* made = nullptr;
    EXPECT_EQ(fi_cntr_open(node.domain(), &attr, &made, nullptr), 0);
    return Held<fid_cntr>(made);
  }
  /// The address of that endpoint as a peer of `node` knows it.
  [[nodiscard]] static fi_addr_t insert(OfiNode& node, fid_ep* ep) {
    OfiNode::Name name{};
    size_t bytes = name.size();
    EXPECT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
    fi_addr_t out = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(node.av(), name.data(), 1, &out, 0, nullptr), 1);
    return out;
  }
  void expect_done(void* context) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(a_.tx(), &entry), 1);
    EXPECT_EQ(entry.op_context, context);
  }
  /// Lets `begin` ask a new endpoint of b_, which closes as soon as it has served the question.
  template <class Begin>
  void expect_answer_of_closing(Begin&& begin) {
    const Held<fid_cntr> served = open_counter(b_);
    Held<fid_ep> owner = open(b_, served.get());
    const fi_addr_t to = insert(a_, owner.get());
    std::thread asker([&] {
      ASSERT_EQ(begin(to), 0);
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_cq_sread(a_.tx(), &entry, 1, nullptr, kPatienceMs), 1);
    });
    EXPECT_EQ(fi_cntr_wait(served.get(), 1, kPatienceMs), 0);
    owner.reset();
    asker.join();
  }
  /// Lets `begin` ask a closed endpoint of b_, before a_ has received the news.
  template <class Begin>
  void expect_end(Begin&& begin) {
    Held<fid_ep> owner = open(b_);
    const fi_addr_t to = insert(a_, owner.get());
    ASSERT_EQ(fi_write(a_.ep(), "8 bytes", 8, nullptr, to, 0, kKey, this), 0);
    expect_done(this);
    owner.reset();
    ASSERT_EQ(begin(to), 0);
    const fi_cq_err_entry error = next_error(a_.tx());
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
    EXPECT_EQ(error.op_context, &bytes_);
  }

  std::vector<uint8_t> memory_ = pattern(1, 100'000);
  std::vector<uint8_t> bytes_ = pattern(2, 100'000);
  Held<fid_mr> region_;
};

// The counter reports the access before the answer has left, since there is no route to the asker
// yet.
TEST_F(OfiClosing, AnAnswerLeavesBeforeItsEndpointCloses) {
  uint64_t one = 1;
  expect_answer_of_closing([&](fi_addr_t to) {
    return fi_write(a_.ep(), bytes_.data(), 8, nullptr, to, 0, kKey, this);
  });
  expect_answer_of_closing([&](fi_addr_t to) {
    return fi_write(a_.ep(), bytes_.data(), bytes_.size(), nullptr, to, 0, kKey, this);
  });
  EXPECT_EQ(memory_, bytes_);
  expect_answer_of_closing([&](fi_addr_t to) {
    return fi_read(a_.ep(), bytes_.data(), bytes_.size(), nullptr, to, 0, kKey, this);
  });
  expect_answer_of_closing([&](fi_addr_t to) {
    return fi_atomic(a_.ep(), &one, 1, nullptr, to, 0, kKey, FI_UINT64, FI_SUM, this);
  });
  expect_answer_of_closing([&](fi_addr_t to) {
    return fi_fetch_atomic(a_.ep(), &one, 1, nullptr, &one, nullptr, to, 0, kKey, FI_UINT64, FI_SUM,
                           this);
  });
}

TEST_F(OfiClosing, QuestionsToAClosedEndpointEnd) {
  uint64_t one = 1;
  iovec piece = {bytes_.data(), 8};
  const fi_rma_iov there = {0, 8, kKey};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = &bytes_;
  expect_end([&](fi_addr_t to) {
    message.addr = to;
    return fi_writemsg(a_.ep(), &message, FI_COMPLETION | FI_REMOTE_CQ_DATA);
  });
  expect_end([&](fi_addr_t to) {
    return fi_writedata(a_.ep(), bytes_.data(), bytes_.size(), nullptr, 1, to, 0, kKey, &bytes_);
  });
  expect_end([&](fi_addr_t to) {
    message.addr = to;
    return fi_readmsg(a_.ep(), &message, FI_COMPLETION | FI_FENCE);
  });
  expect_end([&](fi_addr_t to) {
    return fi_fetch_atomic(a_.ep(), &one, 1, nullptr, &one, nullptr, to, 0, kKey, FI_UINT64, FI_SUM,
                           &bytes_);
  });
}

// The sender has no completion to wait for.
TEST_F(OfiClosing, InjectedMessagesLeaveBeforeTheirEndpointCloses) {
  std::atomic<bool> over = false;
  ASSERT_EQ(fi_inject_write(a_.ep(), bytes_.data(), 64, to_b_, 0, kKey), 0);
  std::thread owner([&] {
    while (!over) {
      b_.expect_silent();
    }
  });
  a_.close_endpoint();
  over = true;
  owner.join();
  EXPECT_TRUE(std::equal(bytes_.begin(), bytes_.begin() + 64, memory_.begin()));
}

// More generations than endpoint numbers: each generation begins like the first.
TEST_F(OfiClosing, AnAskingEndpointIsNotTakenForAnEarlierOneOfItsNumber) {
  for (size_t i = 0; i < 2 * info_->domain_attr->ep_cnt; ++i) {
    SCOPED_TRACE(i);
    const Held<fid_ep> ep = open(a_);
    ASSERT_EQ(fi_write(ep.get(), bytes_.data() + i, 8, nullptr, to_b_, 0, kKey, this), 0);
    expect_done(this);
    EXPECT_EQ(std::memcmp(memory_.data(), bytes_.data() + i, 8), 0);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(OfiClosing, AnAskedEndpointIsNotTakenForAnEarlierOneOfItsNumber) {
  for (size_t i = 0; i < 2 * info_->domain_attr->ep_cnt; ++i) {
    SCOPED_TRACE(i);
    const Held<fid_ep> ep = open(b_);
    fi_addr_t to = insert(a_, ep.get());
    ASSERT_EQ(fi_write(a_.ep(), bytes_.data() + i, 8, nullptr, to, 0, kKey, this), 0);
    expect_done(this);
    EXPECT_EQ(std::memcmp(memory_.data(), bytes_.data() + i, 8), 0);
    ASSERT_EQ(fi_av_remove(a_.av(), &to, 1, 0), 0);
    ASSERT_FALSE(HasFailure());
  }
}

// The owner answers after the asker has closed and another endpoint has its number.
TEST_F(OfiClosing, ALateAnswerDoesNotAnswerAnotherEndpoint) {
  const std::vector<uint8_t> before = memory_;
  uint64_t none = 0;
  uint64_t late = 0;
  uint64_t back = 0;
  {
    const Held<fid_ep> ep = open(a_);
    ASSERT_EQ(fi_atomic(ep.get(), &none, 1, nullptr, to_b_, 0, kKey, FI_UINT64, FI_SUM, this), 0);
    expect_done(this);
    ASSERT_EQ(fi_fetch_atomic(ep.get(), &none, 1, nullptr, &late, nullptr, to_b_, 0, kKey,
                              FI_UINT64, FI_SUM, &late),
              0);
  }
  for (size_t i = 2; i < info_->domain_attr->ep_cnt; ++i) {
    static_cast<void>(open(a_));
  }
  static_cast<void>(open(
      a_));  // a_'s own number is taken: this is the last number before the first is used again
  const Held<fid_ep> ep = open(a_);
  for (size_t at = 8; at < 24; at += 8) {
    ASSERT_EQ(fi_fetch_atomic(ep.get(), &none, 1, nullptr, &back, nullptr, to_b_, at, kKey,
                              FI_UINT64, FI_SUM, this),
              0);
    expect_done(this);
    EXPECT_EQ(std::memcmp(&back, &before[at], 8), 0);
  }
}

}  // namespace
}  // namespace rio::test
