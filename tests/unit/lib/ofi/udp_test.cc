// The provider over UDP: peers are found by the addresses in their names.
#include <rdma/fi_rma.h>

#include <cstring>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kTag = 5;
constexpr size_t kAddressAt = 16;  // in a name

class OfiUdp : public OfiPair {
 protected:
  OfiUdp() : OfiPair(FI_TAGGED | FI_MSG | FI_RMA | FI_SOURCE, {}, "udp") {}
};

TEST_F(OfiUdp, MessagesOfEachSizeArriveAndTellTheirSource) {
  for (const size_t size : {0u, 8u, 4048u, 100'003u, 1u << 20}) {
    const std::vector<uint8_t> bytes = pattern(size + 1, size);
    std::vector<uint8_t> buffer(size + 1, 0xEE);
    ASSERT_EQ(fi_trecv(b_.ep(), buffer.data(), size, nullptr, to_a_, kTag, 0, this), 0);
    ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), size, nullptr, to_b_, kTag, nullptr), 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    ASSERT_EQ(next(b_.rx(), &entry, &source), 1);
    EXPECT_EQ(entry.len, size);
    EXPECT_EQ(source, to_a_);
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size), buffer.begin()));
    EXPECT_EQ(buffer.back(), 0xEE);
    expect_sent(nullptr);
  }
}

TEST_F(OfiUdp, MemoryOfPeersIsWritten) {
  std::vector<uint8_t> theirs(100'000);
  const std::vector<uint8_t> ours = pattern(theirs.size(), theirs.size());
  fid_mr* made = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain(), theirs.data(), theirs.size(), FI_REMOTE_WRITE, 0, 7, 0, &made,
                      nullptr),
            0);
  const Held<fid_mr> region(made);
  ASSERT_EQ(fi_write(a_.ep(), ours.data(), ours.size(), nullptr, to_b_, 0, fi_mr_key(made), this),
            0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(a_.tx(), &entry), 1);
  EXPECT_EQ(entry.op_context, this);
  EXPECT_EQ(theirs, ours);
}

TEST_F(OfiUdp, NamesHaveAnAddressThatIsChecked) {
  const OfiNode::Name name = b_.name();
  char text[128];
  size_t count = sizeof(text);
  fi_av_straddr(a_.av(), name.data(), text, &count);
  const std::string address(reinterpret_cast<const char*>(name.data()) + kAddressAt);
  EXPECT_EQ(std::string(text), "rio://" + address + "/0");
  for (const std::string& wrong : {std::string("host:1"), std::string("10.0.0.1"),
                                   std::string("10.0.0.1:1/x"), std::string(48, '1')}) {
    OfiNode::Name other = name;
    std::memset(other.data() + kAddressAt, 0, other.size() - kAddressAt);
    wrong.copy(reinterpret_cast<char*>(other.data()) + kAddressAt, other.size() - kAddressAt);
    fi_addr_t out = 0;
    int error = 0;
    EXPECT_EQ(fi_av_insert(a_.av(), other.data(), 1, &out, FI_SYNC_ERR, &error), 0) << wrong;
    EXPECT_EQ(out, FI_ADDR_NOTAVAIL);
    EXPECT_EQ(error, FI_EINVAL);
  }
  OfiNode::Name found{};
  size_t bytes = found.size();
  ASSERT_EQ(fi_av_lookup(a_.av(), to_b_, found.data(), &bytes), 0);
  EXPECT_EQ(found, name);
}

TEST_F(OfiUdp, APeerThatIsGoneIsReported) {
  const char byte = 'x';
  ASSERT_EQ(injected([&] { return fi_tinject(a_.ep(), &byte, 1, to_b_, kTag); }), 0);
  char got = 0;
  ASSERT_EQ(fi_trecv(b_.ep(), &got, 1, nullptr, FI_ADDR_UNSPEC, kTag, 0, this), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  const std::vector<uint8_t> large(100'000);
  ASSERT_EQ(fi_tsend(a_.ep(), large.data(), large.size(), nullptr, to_b_, kTag, this), 0);
  work();
  b_.close();
  fi_cq_err_entry error{};
  ssize_t rc = -FI_EAGAIN;
  for (uint64_t turn = 0; turn < kTurns && rc == -FI_EAGAIN; ++turn) {
    rc = fi_cq_read(a_.tx(), &entry, 1);
  }
  ASSERT_EQ(rc, -FI_EAVAIL);
  ASSERT_EQ(fi_cq_readerr(a_.tx(), &error, 0), 1);
  EXPECT_EQ(error.op_context, this);
  // Its context is closed before its card: which of both is heard depends.
  EXPECT_TRUE(error.err == FI_ECONNREFUSED || error.err == FI_ECONNRESET) << error.err;
}

}  // namespace
}  // namespace rio::test
