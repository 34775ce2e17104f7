// Reads and writes in the memory of a peer.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kKey = 0xC0FFEE;
constexpr uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;
// Where what is inside the question, one message and more begin and end.
const size_t kSizes[] = {0, 1, 8, 4000, 4023, 4024, 4025, 4064, 16384, 100003};

class OfiRemote : public OfiPair {
 protected:
  explicit OfiRemote(const std::string& kind = "emu")
      : OfiPair(FI_RMA | FI_ATOMIC | FI_FENCE | FI_RMA_EVENT | FI_TAGGED, {}, kind) {
    region_ = add(memory_, kAll, kKey);
  }

  [[nodiscard]] Held<fid_mr> add(std::vector<uint8_t>& bytes, uint64_t access, uint64_t key) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(b_.domain(), bytes.data(), bytes.size(), access, 0, key, 0, &mr, nullptr),
              0);
    return Held<fid_mr>(mr);
  }
  void expect_done(void* context, uint64_t flags) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(a_.tx(), &entry), 1);
    EXPECT_EQ(entry.op_context, context);
    EXPECT_EQ(entry.flags, flags);
  }
  void expect_refused(ssize_t begun) {
    ASSERT_EQ(begun, 0);
    EXPECT_EQ(next_error(a_.tx()).err, FI_EACCES);
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(200000, 0xEE);
  Held<fid_mr> region_;
};

TEST_F(OfiRemote, WritesAndReadsOfEachSize) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> back(size + 1, 0xDD);
    std::fill(memory_.begin(), memory_.end(), 0xEE);
    ASSERT_EQ(fi_write(a_.ep(), bytes.data(), size, nullptr, to_b_, 100, kKey, this), 0);
    expect_done(this, FI_RMA | FI_WRITE);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin() + 100));
    EXPECT_EQ(memory_[99], 0xEE);
    EXPECT_EQ(memory_[100 + size], 0xEE);
    ASSERT_EQ(fi_read(a_.ep(), back.data(), size, nullptr, to_b_, 100, kKey, &back), 0);
    expect_done(&back, FI_RMA | FI_READ);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), back.begin()));
    EXPECT_EQ(back[size], 0xDD);
  }
  b_.expect_silent();
}

TEST_F(OfiRemote, EachCall) {
  const std::vector<uint8_t> bytes = pattern(1, 6000);
  auto* const data = const_cast<uint8_t*>(bytes.data());
  const iovec from[] = {{data, 1000}, {data + 1000, 5000}};
  const fi_rma_iov there = {500, 6000, kKey};
  fi_msg_rma message{};
  message.msg_iov = from;
  message.iov_count = 2;
  message.addr = to_b_;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = this;
  message.data = 88;
  fid_ep* const ep = a_.ep();
  const auto written = [&](ssize_t begun, size_t size, bool tells, bool immediate) {
    ASSERT_EQ(begun, 0);
    if (tells) {
      expect_done(this, FI_RMA | FI_WRITE);
    }
    if (immediate) {
      fi_cq_tagged_entry entry{};
      ASSERT_EQ(next(b_.rx(), &entry), 1);
      EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(entry.data, 88u);
      EXPECT_EQ(entry.len, size);
    }
    const auto at = memory_.begin() + 500;
    for (uint64_t turn = 0; turn < kTurns && !std::equal(bytes.begin(), bytes.begin() + size, at);
         ++turn) {
      a_.expect_silent();
      b_.expect_silent();
    }
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + size, at));
    std::fill(memory_.begin(), memory_.end(), 0xEE);
  };
  written(fi_writev(ep, from, nullptr, 2, to_b_, 500, kKey, this), 6000, true, false);
  written(fi_writemsg(ep, &message, 0), 6000, true, false);
  written(fi_writemsg(ep, &message, FI_REMOTE_CQ_DATA), 6000, true, true);
  written(fi_writedata(ep, data, 100, nullptr, 88, to_b_, 500, kKey, this), 100, true, true);
  written(fi_inject_write(ep, data, 64, to_b_, 500, kKey), 64, false, false);
  written(fi_inject_writedata(ep, data, 64, 88, to_b_, 500, kKey), 64, false, true);
  std::copy(bytes.begin(), bytes.end(), memory_.begin() + 500);
  std::vector<uint8_t> back(6000);
  const iovec to[] = {{back.data(), 1}, {back.data() + 1, 5999}};
  ASSERT_EQ(fi_readv(ep, to, nullptr, 2, to_b_, 500, kKey, this), 0);
  expect_done(this, FI_RMA | FI_READ);
  EXPECT_EQ(back, bytes);
  std::fill(back.begin(), back.end(), 0);
  message.msg_iov = to;
  ASSERT_EQ(fi_readmsg(ep, &message, 0), 0);
  expect_done(this, FI_RMA | FI_READ);
  EXPECT_EQ(back, bytes);
}

TEST_F(OfiRemote, ForbiddenAccessesAreRefused) {
  std::vector<uint8_t> other(100, 0xAA);
  const Held<fid_mr> reads = add(other, FI_REMOTE_READ, 2);
  const Held<fid_mr> writes = add(other, FI_REMOTE_WRITE, 3);
  std::vector<uint8_t> big(50000, 0xBB);
  uint8_t* const data = big.data();
  fid_ep* const ep = a_.ep();
  expect_refused(fi_write(ep, data, 8, nullptr, to_b_, 0, 4, this));   // no such key
  expect_refused(fi_write(ep, data, 8, nullptr, to_b_, 93, 3, this));  // past the end
  expect_refused(fi_write(ep, data, 8, nullptr, to_b_, UINT64_MAX - 3, 3, this));
  expect_refused(fi_write(ep, data, 50000, nullptr, to_b_, 0, 3, this));  // all too long
  expect_refused(fi_write(ep, data, 8, nullptr, to_b_, 0, 2, this));      // the right
  expect_refused(fi_read(ep, data, 8, nullptr, to_b_, 0, 3, this));
  expect_refused(fi_read(ep, data, 50000, nullptr, to_b_, 0, 2, this));
  EXPECT_EQ(other, std::vector<uint8_t>(100, 0xAA));
  EXPECT_EQ(big, std::vector<uint8_t>(50000, 0xBB));
  // It goes on with the next, and the borders are allowed.
  ASSERT_EQ(fi_write(ep, data, 8, nullptr, to_b_, 92, 3, this), 0);
  expect_done(this, FI_RMA | FI_WRITE);
  EXPECT_EQ(other[99], 0xBB);
  EXPECT_EQ(fi_write(ep, data, 8, nullptr, to_b_ + 1, 0, 3, this), -FI_EINVAL);
}

TEST_F(OfiRemote, AKeyIsGivenOnce) {
  fid_mr* mr = nullptr;
  EXPECT_EQ(fi_mr_reg(b_.domain(), &mr, 8, kAll, 0, kKey, 0, &mr, nullptr), -FI_ENOKEY);
  region_.reset();
  expect_refused(fi_write(a_.ep(), "8 bytes", 8, nullptr, to_b_, 0, kKey, this));
  EXPECT_EQ(fi_mr_reg(b_.domain(), memory_.data(), 8, kAll, 0, kKey, 0, &mr, nullptr), 0);
  region_.reset(mr);
}

TEST_F(OfiRemote, OneThatFencesWaitsForAllBeforeIt) {
  std::vector<uint8_t> big = pattern(1, 150000);
  std::vector<uint8_t> back(150000);
  ASSERT_EQ(fi_write(a_.ep(), big.data(), big.size(), nullptr, to_b_, 0, kKey, &big), 0);
  iovec piece = {back.data(), back.size()};
  const fi_rma_iov there = {0, back.size(), kKey};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to_b_;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = &back;
  ASSERT_EQ(fi_readmsg(a_.ep(), &message, FI_FENCE), 0);
  piece = {const_cast<char*>("later"), 5};
  const fi_rma_iov first = {0, 5, kKey};
  message.rma_iov = &first;
  message.context = this;
  ASSERT_EQ(fi_writemsg(a_.ep(), &message, FI_FENCE), 0);
  expect_done(&big, FI_RMA | FI_WRITE);
  expect_done(&back, FI_RMA | FI_READ);
  expect_done(this, FI_RMA | FI_WRITE);
  EXPECT_EQ(back, big);
  EXPECT_EQ(std::memcmp(memory_.data(), "later", 5), 0);
}

// More at once than a peer serves at once, in all sizes.
TEST_F(OfiRemote, ManyAtOnce) {
  constexpr size_t kCount = 3000;
  const std::vector<uint8_t> bytes = pattern(5, kCount * 64);
  std::vector<uint8_t> back(bytes.size());
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_write(a_.ep(), bytes.data() + i * 64, 64, nullptr, to_b_, i * 64, kKey, nullptr),
              0);
  }
  for (size_t i = 0; i < kCount; ++i) {
    expect_done(nullptr, FI_RMA | FI_WRITE);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin()));
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_read(a_.ep(), back.data() + i * 64, 64, nullptr, to_b_, i * 64, kKey, nullptr), 0);
  }
  for (size_t i = 0; i < kCount; ++i) {
    expect_done(nullptr, FI_RMA | FI_READ);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_EQ(back, bytes);
}

// Both ask much of each other before either looks: no side's answers wait behind its questions.
TEST_F(OfiRemote, BothAtOnce) {
  constexpr size_t kCount = 3000;
  constexpr uint32_t kTurnsForAll = 10'000'000;
  std::vector<uint8_t> others(8);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(a_.domain(), others.data(), others.size(), kAll, 0, 9, 0, &mr, nullptr), 0);
  const Held<fid_mr> held(mr);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_write(a_.ep(), "8 bytes", 8, nullptr, to_b_, 0, kKey, nullptr), 0);
    ASSERT_EQ(fi_write(b_.ep(), "8 bytes", 8, nullptr, to_a_, 0, 9, nullptr), 0);
  }
  size_t done = 0;
  fi_cq_tagged_entry entry{};
  for (uint32_t turn = 0; turn < kTurnsForAll && done < 2 * kCount; ++turn) {
    done += fi_cq_read(a_.tx(), &entry, 1) == 1 ? 1 : 0;
    done += fi_cq_read(b_.tx(), &entry, 1) == 1 ? 1 : 0;
  }
  EXPECT_EQ(done, 2 * kCount);
}

/// Over a fabric, which tells who is gone.
class OfiRemoteFabric : public OfiRemote {
 protected:
  OfiRemoteFabric() : OfiRemote("shm") {}
};

TEST_F(OfiRemoteFabric, APeerThatIsGoneIsAnError) {
  std::vector<uint8_t> back(100);
  ASSERT_EQ(fi_read(a_.ep(), back.data(), 100, nullptr, to_b_, 0, kKey, this), 0);
  expect_done(this, FI_RMA | FI_READ);
  // It reads from a peer that does not answer any more.
  region_.reset();
  b_.close();
  ASSERT_EQ(fi_read(a_.ep(), back.data(), 100, nullptr, to_b_, 0, kKey, this), 0);
  fi_cq_tagged_entry entry{};
  ssize_t rc = -FI_EAGAIN;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (rc == -FI_EAGAIN && std::chrono::steady_clock::now() < end) {
    rc = fi_cq_read(a_.tx(), &entry, 1);
  }
  ASSERT_EQ(rc, -FI_EAVAIL);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(a_.tx(), &error, 0), 1);
  EXPECT_NE(error.err, 0);
}

TEST_F(OfiRemote, CountersCount) {
  fi_cntr_attr attr{};
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(b_.domain(), &attr, &made, nullptr), 0);
  const Held<fid_cntr> counter(made);
  ASSERT_EQ(fi_mr_bind(region_.get(), &made->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&made->fid), -FI_EBUSY);
  EXPECT_EQ(fi_cntr_read(made), 0u);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(fi_write(a_.ep(), "8 bytes", 8, nullptr, to_b_, 0, kKey, nullptr), 0);
    expect_done(nullptr, FI_RMA | FI_WRITE);
  }
  EXPECT_EQ(fi_cntr_read(made), 5u);
  EXPECT_EQ(fi_cntr_wait(made, 5, 0), 0);
  EXPECT_EQ(fi_cntr_wait(made, 6, 1), -FI_ETIMEDOUT);
  ASSERT_EQ(fi_cntr_add(made, 2), 0);
  EXPECT_EQ(fi_cntr_read(made), 7u);
  ASSERT_EQ(fi_cntr_set(made, 1), 0);
  ASSERT_EQ(fi_cntr_adderr(made, 3), 0);
  EXPECT_EQ(fi_cntr_read(made), 1u);
  EXPECT_EQ(fi_cntr_readerr(made), 3u);
  region_.reset();
}

/// Peers name addresses, and keys are the provider's.
class OfiAddresses : public OfiTest {};

TEST_F(OfiAddresses, AreThoseOfTheOwner) {
  Info wanted = hints(FI_RMA | FI_MSG);
  wanted->domain_attr->mr_mode = FI_MR_BASIC;
  const Info info = get_info(wanted);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, wanted->domain_attr->mr_mode);
  OfiNode own(info, 1);
  const fi_addr_t to = own.insert(own);
  uint64_t values[2] = {1, 2};
  fid_mr* mrs[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_mr_reg(own.domain(), &values[i], 8, kAll, 0, 7, 0, &mrs[i], nullptr), 0);
  }
  const Held<fid_mr> first(mrs[0]);
  const Held<fid_mr> second(mrs[1]);
  EXPECT_NE(fi_mr_key(mrs[0]), fi_mr_key(mrs[1]));
  const uint64_t written = 42;
  ASSERT_EQ(fi_write(own.ep(), &written, 8, nullptr, to, reinterpret_cast<uintptr_t>(&values[1]),
                     fi_mr_key(mrs[1]), nullptr),
            0);
  fi_cq_tagged_entry entry{};
  ssize_t rc = -FI_EAGAIN;
  for (uint32_t turn = 0; rc == -FI_EAGAIN && turn < 1'000'000; ++turn) {
    rc = fi_cq_read(own.tx(), &entry, 1);
  }
  ASSERT_EQ(rc, 1);
  EXPECT_EQ(values[0], 1u);
  EXPECT_EQ(values[1], 42u);
}

}  // namespace
}  // namespace rio::test
