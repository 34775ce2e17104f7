// Atomic operations in the memory of a peer: each of them, of each type, against what C++ computes.
#include <rdma/fi_atomic.h>

#include <bit>
#include <cstring>
#include <limits>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kKey = 5;
constexpr size_t kOffset = 24;

template <class Number>
constexpr fi_datatype type_of() {
  if constexpr (std::is_same_v<Number, float>) {
    return FI_FLOAT;
  } else if constexpr (std::is_same_v<Number, double>) {
    return FI_DOUBLE;
  } else {
    constexpr fi_datatype kTypes[2][4] = {{FI_UINT8, FI_UINT16, FI_UINT32, FI_UINT64},
                                          {FI_INT8, FI_INT16, FI_INT32, FI_INT64}};
    return kTypes[std::is_signed_v<Number>][std::countr_zero(sizeof(Number))];
  }
}

/// The values that make a difference.
template <class Number>
std::vector<Number> values() {
  using Limits = std::numeric_limits<Number>;
  return {Number{0},        Number{1}, Number{2},     static_cast<Number>(-1),
          Limits::lowest(), Number{7}, Limits::max(), static_cast<Number>(0x55)};
}

template <class Number>
Number wanted_of(fi_op op, Number old, Number operand) {
  if constexpr (std::is_integral_v<Number>) {
    using Wide = uint64_t;  // it wraps
    switch (op) {
      case FI_SUM:
        return static_cast<Number>(static_cast<Wide>(old) + static_cast<Wide>(operand));
      case FI_PROD:
        return static_cast<Number>(static_cast<Wide>(old) * static_cast<Wide>(operand));
      case FI_BOR:
        return static_cast<Number>(old | operand);
      case FI_BAND:
        return static_cast<Number>(old & operand);
      case FI_BXOR:
        return static_cast<Number>(old ^ operand);
      default:
        break;
    }
  }
  switch (op) {
    case FI_MIN:
      return operand < old ? operand : old;
    case FI_MAX:
      return operand > old ? operand : old;
    case FI_SUM:
      return old + operand;
    case FI_PROD:
      return old * operand;
    case FI_LOR:
      return old != 0 || operand != 0 ? Number{1} : Number{0};
    case FI_LAND:
      return old != 0 && operand != 0 ? Number{1} : Number{0};
    case FI_LXOR:
      return (old != 0) != (operand != 0) ? Number{1} : Number{0};
    case FI_ATOMIC_WRITE:
      return operand;
    default:
      return old;
  }
}

bool swaps(fi_op op, int order) {
  switch (op) {
    case FI_CSWAP:
      return order == 0;
    case FI_CSWAP_NE:
      return order != 0;
    case FI_CSWAP_LE:
      return order <= 0;
    case FI_CSWAP_LT:
      return order < 0;
    case FI_CSWAP_GE:
      return order >= 0;
    default:
      return order > 0;
  }
}

class OfiAtomics : public OfiPair {
 protected:
  OfiAtomics() : OfiPair(FI_RMA | FI_ATOMIC | FI_RMA_EVENT) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(b_.domain(), memory_.data(), memory_.size(),
                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &mr, nullptr),
              0);
    region_.reset(mr);
  }

  void expect_done(uint64_t flags) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(a_.tx(), &entry), 1);
    EXPECT_EQ(entry.op_context, this);
    EXPECT_EQ(entry.flags, FI_ATOMIC | flags);
  }
  template <class Number>
  void set(const std::vector<Number>& numbers) {
    std::memcpy(memory_.data() + kOffset, numbers.data(), numbers.size() * sizeof(Number));
  }
  template <class Number>
  std::vector<Number> get(size_t count) {
    std::vector<Number> numbers(count);
    std::memcpy(numbers.data(), memory_.data() + kOffset, count * sizeof(Number));
    return numbers;
  }
  /// All pairs of values.
  template <class Number>
  static void pairs(std::vector<Number>* old, std::vector<Number>* operands) {
    for (const Number a : values<Number>()) {
      for (const Number b : values<Number>()) {
        old->push_back(a);
        operands->push_back(b);
      }
    }
  }

  template <class Number>
  void check_update(fi_op op, bool fetches) {
    SCOPED_TRACE(testing::Message() << "op " << op << " of " << sizeof(Number) << " bytes");
    std::vector<Number> old;
    std::vector<Number> operands;
    pairs(&old, &operands);
    const size_t count = old.size();
    size_t most = 0;
    const int valid = fetches ? fi_fetch_atomicvalid(a_.ep(), type_of<Number>(), op, &most)
                              : fi_atomicvalid(a_.ep(), type_of<Number>(), op, &most);
    const bool whole = std::is_integral_v<Number>;
    const bool there = (op != FI_ATOMIC_READ || fetches) &&
                       (whole || (op != FI_BOR && op != FI_BAND && op != FI_BXOR));
    ASSERT_EQ(valid, there ? 0 : -FI_EOPNOTSUPP);
    std::vector<Number> result(count);
    set(old);
    const ssize_t begun =
        fetches ? fi_fetch_atomic(a_.ep(), operands.data(), count, nullptr, result.data(), nullptr,
                                  to_b_, kOffset, kKey, type_of<Number>(), op, this)
                : fi_atomic(a_.ep(), operands.data(), count, nullptr, to_b_, kOffset, kKey,
                            type_of<Number>(), op, this);
    ASSERT_EQ(begun, there ? 0 : -FI_EOPNOTSUPP);
    if (!there) {
      return;
    }
    ASSERT_GE(most, count);
    expect_done(fetches ? FI_READ : FI_WRITE);
    std::vector<Number> wanted;
    for (size_t i = 0; i < count; ++i) {
      wanted.push_back(wanted_of(op, old[i], operands[i]));
    }
    EXPECT_EQ(get<Number>(count), wanted);
    EXPECT_TRUE(!fetches || result == old);
  }
  template <class Number>
  void check_compare(fi_op op) {
    SCOPED_TRACE(testing::Message() << "op " << op << " of " << sizeof(Number) << " bytes");
    std::vector<Number> old;
    std::vector<Number> compare;
    pairs(&old, &compare);
    const size_t count = old.size();
    std::vector<Number> operands(count, Number{99});
    std::vector<Number> result(count);
    set(old);
    const ssize_t begun = fi_compare_atomic(a_.ep(), operands.data(), count, nullptr,
                                            compare.data(), nullptr, result.data(), nullptr, to_b_,
                                            kOffset, kKey, type_of<Number>(), op, this);
    if (op == FI_MSWAP && !std::is_integral_v<Number>) {
      ASSERT_EQ(begun, -FI_EOPNOTSUPP);
      return;
    }
    ASSERT_EQ(begun, 0);
    expect_done(FI_READ);
    std::vector<Number> wanted = old;
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<Number>) {
        if (op == FI_MSWAP) {
          wanted[i] = static_cast<Number>((99 & compare[i]) | (old[i] & ~compare[i]));
          continue;
        }
      }
      const int order = compare[i] < old[i] ? -1 : compare[i] > old[i] ? 1 : 0;
      wanted[i] = swaps(op, order) ? Number{99} : old[i];
    }
    EXPECT_EQ(get<Number>(count), wanted);
    EXPECT_EQ(result, old);
  }
  template <class Number>
  void check_all() {
    for (int op = FI_MIN; op <= FI_ATOMIC_WRITE; ++op) {
      check_update<Number>(static_cast<fi_op>(op), false);
      check_update<Number>(static_cast<fi_op>(op), true);
    }
    for (int op = FI_CSWAP; op <= FI_MSWAP; ++op) {
      check_compare<Number>(static_cast<fi_op>(op));
    }
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(8192);
  Held<fid_mr> region_;
};

TEST_F(OfiAtomics, OfEachTypeAndOperation) {
  check_all<int8_t>();
  check_all<uint8_t>();
  check_all<int16_t>();
  check_all<uint16_t>();
  check_all<int32_t>();
  check_all<uint32_t>();
  check_all<int64_t>();
  check_all<uint64_t>();
  check_all<float>();
  check_all<double>();
}

TEST_F(OfiAtomics, ImpossibleOperationsAreRefused) {
  uint64_t operand[1000] = {};
  uint64_t result[1000] = {};
  fid_ep* const ep = a_.ep();
  EXPECT_EQ(fi_atomic(ep, operand, 1, nullptr, to_b_, 0, kKey, FI_FLOAT_COMPLEX, FI_SUM, this),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomic(ep, operand, 1, nullptr, to_b_, 0, kKey, FI_UINT64, FI_CSWAP, this),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomic(ep, operand, 1000, nullptr, to_b_, 0, kKey, FI_UINT64, FI_SUM, this),
            -FI_EMSGSIZE);
  size_t most = 0;
  ASSERT_EQ(fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &most), 0);
  ASSERT_LT(most, 1000u);
  ASSERT_EQ(fi_fetch_atomic(ep, operand, most, nullptr, result, nullptr, to_b_, 0, kKey, FI_UINT64,
                            FI_SUM, this),
            0);
  expect_done(FI_READ);
  // Past the end of the region, and with another's key.
  ASSERT_EQ(fi_atomic(ep, operand, 1, nullptr, to_b_, 8185, kKey, FI_UINT64, FI_SUM, this), 0);
  EXPECT_EQ(next_error(a_.tx()).err, FI_EACCES);
  ASSERT_EQ(fi_fetch_atomic(ep, operand, 1, nullptr, result, nullptr, to_b_, 0, 6, FI_UINT64,
                            FI_SUM, this),
            0);
  EXPECT_EQ(next_error(a_.tx()).err, FI_EACCES);
  fi_atomic_attr attr{};
  EXPECT_EQ(fi_query_atomic(a_.domain(), FI_UINT64, FI_CSWAP, &attr, FI_COMPARE_ATOMIC), 0);
  EXPECT_EQ(attr.size, 8u);
  EXPECT_EQ(fi_query_atomic(a_.domain(), FI_UINT64, FI_CSWAP, &attr, 0), -FI_EOPNOTSUPP);
}

TEST_F(OfiAtomics, Messages) {
  uint32_t operands[4] = {1, 2, 3, 4};
  uint32_t result[4] = {};
  uint32_t compare[4] = {1, 0, 3, 0};
  const fi_ioc from[] = {{operands, 1}, {operands + 1, 3}};
  fi_ioc to[] = {{result, 3}, {result + 3, 1}};
  const fi_ioc with[] = {{compare, 4}};
  const fi_rma_ioc there = {kOffset, 4, kKey};
  fi_msg_atomic message{};
  message.msg_iov = from;
  message.iov_count = 2;
  message.addr = to_b_;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.datatype = FI_UINT32;
  message.op = FI_SUM;
  message.context = this;
  message.data = 31;
  using Four = std::vector<uint32_t>;
  set(Four{10, 20, 30, 40});
  ASSERT_EQ(fi_atomicmsg(a_.ep(), &message, FI_REMOTE_CQ_DATA), 0);
  expect_done(FI_WRITE);
  EXPECT_EQ(get<uint32_t>(4), (Four{11, 22, 33, 44}));
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(next(b_.rx(), &entry), 1);
  EXPECT_EQ(entry.flags, FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.data, 31u);
  ASSERT_EQ(fi_fetch_atomicmsg(a_.ep(), &message, to, nullptr, 2, 0), 0);
  expect_done(FI_READ);
  EXPECT_EQ(Four(result, result + 4), (Four{11, 22, 33, 44}));
  EXPECT_EQ(get<uint32_t>(4), (Four{12, 24, 36, 48}));
  set(Four{1, 1, 3, 1});
  message.op = FI_CSWAP;
  ASSERT_EQ(fi_compare_atomicmsg(a_.ep(), &message, with, nullptr, 1, to, nullptr, 2, 0), 0);
  expect_done(FI_READ);
  EXPECT_EQ(Four(result, result + 4), (Four{1, 1, 3, 1}));
  EXPECT_EQ(get<uint32_t>(4), (Four{1, 1, 3, 1}));  // 1 and 3 were swapped with themselves
  set(Four{0, 0, 0, 0});
  ASSERT_EQ(fi_inject_atomic(a_.ep(), operands, 4, to_b_, kOffset, kKey, FI_UINT32, FI_SUM), 0);
  for (uint64_t turn = 0; turn < kTurns && get<uint32_t>(4)[3] == 0; ++turn) {
    a_.expect_silent();
    b_.expect_silent();
  }
  EXPECT_EQ(get<uint32_t>(4), (Four{1, 2, 3, 4}));
}

}  // namespace
}  // namespace rio::test
