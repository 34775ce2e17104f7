// Division by a constant is exact where rounding is hardest: beside multiples of the divisor.
#include "fpga/sim/reciprocal.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace rio::sim {
namespace {

TEST(Reciprocal, DividesExactly) {
  base::Random random(7);
  for (uint32_t i = 0; i < 200'000; ++i) {
    const uint32_t chosen[] = {1,
                               2,
                               3,
                               7,
                               100,
                               641,
                               65'535,
                               65'536,
                               0x7FFFFFFF,
                               0x80000000,
                               0xFFFFFFFE,
                               0xFFFFFFFF,
                               1 + static_cast<uint32_t>(random.next() >> 33)};
    const uint32_t divisor = chosen[i % std::size(chosen)];
    const auto any = static_cast<uint32_t>(random.next());
    const uint32_t multiple = any - any % divisor;
    const Reciprocal reciprocal(divisor);
    for (const uint32_t number : {any, multiple, multiple - 1, multiple + divisor - 1, 0u, ~0u}) {
      ASSERT_EQ(reciprocal.divide(number), number / divisor) << number << " / " << divisor;
      ASSERT_EQ(reciprocal.modulo(number), number % divisor) << number << " % " << divisor;
    }
  }
}

}  // namespace
}  // namespace rio::sim
