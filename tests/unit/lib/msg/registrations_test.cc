// Memory registrations of transfers: shared while in use, and kept for a while if that is harmless.
#include "lib/msg/registrations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rio::msg::test {
namespace {

constexpr uint64_t kPage = 4096;

class RegistrationsTest : public testing::Test {
 protected:
  RegistrationsTest() : memory_((kPages + 1) * kPage) {
    EXPECT_EQ(Endpoint::open("emu:loop", {}, &endpoint_), 0);
    registrations_ = std::make_unique<Registrations>(*endpoint_);
  }
  /// Memory that begins on a page.
  [[nodiscard]] uint8_t* page(uint64_t index) {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (kPage - begin % kPage) % kPage + index * kPage;
  }
  [[nodiscard]] bool reachable(const void* va) {
    uint64_t iova = 0;
    return endpoint_->iova(va, 1, &iova) == 0;
  }

  static constexpr uint64_t kPages = 2 * (Registrations::kKeptMax + 8);
  std::vector<uint8_t> memory_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Registrations> registrations_;
};

TEST_F(RegistrationsTest, TheSameMemoryIsRegisteredOnce) {
  const pmd::mem::Region* const all = registrations_->get(page(0), 4 * kPage);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(registrations_->get(page(0), 4 * kPage), all);
  EXPECT_EQ(registrations_->get(page(1) + 5, 100), all) << "the whole range covers it";
  const pmd::mem::Region* const other = registrations_->get(page(3), 2 * kPage);
  EXPECT_NE(other, all) << "the whole range does not cover it";
  EXPECT_EQ(registrations_->count(), 2u);
  EXPECT_EQ(registrations_->kept(), 0u);
  registrations_->put(all);
  registrations_->put(all);
  EXPECT_EQ(registrations_->kept(), 0u) << "one transfer still uses it";
  registrations_->put(all);
  registrations_->put(other);
  EXPECT_EQ(registrations_->kept(), 2u);
  EXPECT_TRUE(reachable(page(0)));
}

TEST_F(RegistrationsTest, KeptRegistrationsDoNotCutALargerOneIntoPieces) {
  registrations_->put(registrations_->get(page(0), kPage));
  const pmd::mem::Region* const used = registrations_->get(page(8), kPage);
  const pmd::mem::Region* const larger = registrations_->get(page(0), 4 * kPage);
  ASSERT_NE(larger, nullptr);
  EXPECT_EQ(larger->runs.size(), 1u);
  EXPECT_EQ(registrations_->count(), 2u);
  EXPECT_EQ(registrations_->kept(), 0u);
  const pmd::mem::Region* const around = registrations_->get(page(7), 4 * kPage);
  ASSERT_NE(around, nullptr);
  EXPECT_GT(around->runs.size(), 1u) << "one that is in use stays";
  registrations_->put(used);
}

/// As two arrays of a heap: a program that sends from one and receives into the other uses them in
/// turn.
TEST_F(RegistrationsTest, BuffersThatShareAPageAreKeptTogether) {
  constexpr uint64_t kBytes = kPage + kPage / 2;
  uint8_t* const one = page(4);
  uint8_t* const other = page(4) + kBytes;
  registrations_->put(registrations_->get(one, kBytes));
  const pmd::mem::Region* const both = registrations_->get(other, kBytes);
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->runs.size(), 1u);
  EXPECT_EQ(registrations_->get(one, kBytes), both);
  registrations_->put(both);
  registrations_->put(both);
  EXPECT_EQ(registrations_->count(), 1u);
  EXPECT_EQ(registrations_->kept(), 1u);
}

TEST_F(RegistrationsTest, TheOldestKeptRegistrationIsDropped) {
  for (uint32_t i = 0; i < Registrations::kKeptMax; ++i) {
    registrations_->put(registrations_->get(page(2ul * i), kPage));
  }
  registrations_->put(registrations_->get(page(0), kPage));  // the second is the oldest now
  const pmd::mem::Region* const more =
      registrations_->get(page(2ul * Registrations::kKeptMax), kPage);
  EXPECT_EQ(registrations_->kept(), Registrations::kKeptMax)
      << "a registration in use does not count as kept";
  registrations_->put(more);
  EXPECT_EQ(registrations_->kept(), Registrations::kKeptMax);
  EXPECT_EQ(registrations_->count(), Registrations::kKeptMax);
  EXPECT_TRUE(reachable(page(0)));
  EXPECT_FALSE(reachable(page(2)));
  EXPECT_TRUE(reachable(page(4)));
}

/// The user has registered this range too; the library's registration does not end the user's.
TEST_F(RegistrationsTest, AUsersOwnRegistrationStays) {
  const pmd::mem::Region* users = nullptr;
  ASSERT_EQ(endpoint_->register_memory(page(0), kPage, &users), 0);
  for (uint32_t i = 0; i <= Registrations::kKeptMax; ++i) {
    registrations_->put(registrations_->get(page(2ul * i), kPage));
  }
  EXPECT_TRUE(reachable(page(0)));
  EXPECT_EQ(users->va, page(0));
  EXPECT_EQ(endpoint_->unregister_memory(users), 0);
  EXPECT_FALSE(reachable(page(0)));
  EXPECT_EQ(endpoint_->unregister_memory(users), -ENOENT);
}

}  // namespace
}  // namespace rio::msg::test
