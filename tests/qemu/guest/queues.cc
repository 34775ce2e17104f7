// The queues one by one, on a card that hears itself.
#include <cstdio>
#include <cstring>

#include "pmd/bus/vfio/pci_scan.hpp"
#include "tests/qemu/guest/guest.hpp"

namespace rio::guest {
namespace {

using pmd::Status;

constexpr uint32_t kSizes[] = {1, 8, 16, 17, 64, 255, 256, 257, 1000, 4096};

}  // namespace

/// find CARD [CARD]: the scan finds exactly these cards, with their drivers.
int find(const Arguments& args) {
  std::vector<pmd::vfio::PciCard> cards;
  if (pmd::vfio::find_cards(pmd::vfio::PciPaths{}, &cards) != 0) {
    return 1;
  }
  std::vector<std::string> found;
  for (const pmd::vfio::PciCard& card : cards) {
    std::printf("%s driver %s, IOMMU group %d, BAR%d of %llu bytes\n", card.address.c_str(),
                card.driver.empty() ? "none" : card.driver.c_str(), card.iommu_group, card.bar,
                static_cast<unsigned long long>(card.bar_bytes[static_cast<size_t>(card.bar)]));
    found.push_back(card.address);
  }
  return found == args ? 0
                       : fail("%zu cards, not the %zu that are there", found.size(), args.size());
}

/// messages CARD: through the shared queue, all kinds of lengths.
int messages(const Arguments& args) {
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  uint32_t value = 1;
  for (int round = 0; round < 8;
       ++round) {  // more messages than buffers, so that buffers are reused
    for (const uint32_t len_bytes : kSizes) {
      if (!card.pass(card, len_bytes, value, static_cast<uint8_t>(value % regs::kMultiMailboxes))) {
        return 1;
      }
      ++value;
    }
  }
  fact("messages", value - 1);
  const auto counts = card.card().tx().mmio();
  if (counts.reads != 0) {
    return fail("%llu BAR reads by bursts", static_cast<unsigned long long>(counts.reads));
  }
  return card.close() == 0 ? 0 : 1;
}

/// large CARD: memory of the driver, longer than a hugepage, contiguous for the card.
int large_memory(const Arguments& args) {
  static constexpr size_t kBytes = size_t{7} << 20;
  Station card;
  pmd::DmaMemory memory;
  if (!card.open(args[0]) || card.card().alloc(kBytes, 4096, &memory) != 0) {
    return 1;
  }
  auto* const bytes = static_cast<uint8_t*>(memory.va);
  // One message from each piece of 1 MiB: the card must read the program's bytes.
  for (size_t at = 4096; at < kBytes; at += size_t{1} << 20) {
    const auto value = static_cast<uint32_t>(at >> 20) + 100;
    fill(bytes + at, 4096, value);
    pmd::TxMessage out{};
    out.iova = memory.iova + at;
    out.dest_id = card.dest_id();
    out.length_bytes = 4096;
    pmd::TxDone done{};
    pmd::RxMessage in{};
    const uint8_t* came = nullptr;
    if (!card.send(out, &done) || done.status != Status::kOk || !card.receive(&in, &came) ||
        !filled(came, 4096, value)) {
      return fail("a message from byte %zu of a large piece: status %d", at,
                  static_cast<int>(done.status));
    }
  }
  return card.close() == 0 ? 0 : 1;
}

/// dedicated CARD: messages straight into their entries' memory.
int dedicated(const Arguments& args) {
  static constexpr uint32_t kBytes[] = {4096, 256, 2048, 4096};
  static constexpr uint32_t kPlace = 8192;  // distance of entries, so that a write beside one shows
  static constexpr uint8_t kMbox = 2;
  Station card;
  pmd::DmaMemory memory;
  pmd::DedicatedRxQueue* queue = nullptr;
  if (!card.open(args[0]) || card.card().alloc(std::size(kBytes) * kPlace, 4096, &memory) != 0 ||
      card.card().open_dedicated(3, card.dest_id(), kMbox, &queue) != 0) {
    return 1;
  }
  auto* const bytes = static_cast<uint8_t*>(memory.va);
  std::memset(bytes, 0xEE, memory.len_bytes);
  for (uint32_t i = 0; i < std::size(kBytes); ++i) {
    const pmd::DedicatedEntry entry{memory.iova + i * kPlace, 70 + i, kBytes[i]};
    if (queue->post(&entry, 1) != 1) {
      return fail("entry %u is refused, reason %d", i, static_cast<int>(queue->last_reject()));
    }
  }
  for (uint32_t i = 0; i < std::size(kBytes); ++i) {
    fill(card.memory().va, kBytes[i], i);
    pmd::TxMessage out{};
    out.iova = card.memory().iova;
    out.dest_id = card.dest_id();
    out.length_bytes = static_cast<uint16_t>(kBytes[i]);
    out.mbox = kMbox;
    pmd::TxDone sent{};
    pmd::EntryDone done{};
    if (!card.send(out, &sent) || !eventually([&] { return queue->reap(&done, 1) == 1; }) ||
        sent.status != Status::kOk || done.status != Status::kOk || done.cookie != 70 + i ||
        done.bytes != kBytes[i] || !filled(bytes + i * kPlace, kBytes[i], i) ||
        bytes[i * kPlace + kBytes[i]] != 0xEE) {
      return fail("dedicated entry %u: sent %d, status %d, %u bytes", i,
                  static_cast<int>(sent.status), static_cast<int>(done.status), done.bytes);
    }
  }
  return card.card().close_dedicated(3) == 0 && card.close() == 0 ? 0 : 1;
}

/// dma CARD: writes through an inbound window of its own, and reads back.
int remote_memory(const Arguments& args) {
  static constexpr uint64_t kRioAddr = 0x12'3456'0000;
  static constexpr uint32_t kBytes = 4096;
  Station card;
  pmd::DmaMemory window;
  if (!card.open(args[0]) || card.card().alloc(kBytes, 4096, &window) != 0) {
    return 1;
  }
  uint32_t index = 0;
  const pmd::Window inbound{.rio_addr = kRioAddr,
                            .size_bytes = kBytes,
                            .iova = window.iova,
                            .rights = pmd::WindowRights::kRead | pmd::WindowRights::kWrite};
  if (card.card().queues().windows().open(inbound, &index) != 0) {
    return 1;
  }
  auto* const local = static_cast<uint8_t*>(card.memory().va);
  fill(local, kBytes, 5);
  const auto run = [&](regs::DmaOp op, uint64_t rio_addr, uint64_t iova, pmd::EntryDone* done) {
    const pmd::DmaRequest request{.rio_addr = rio_addr,
                                  .iova = iova,
                                  .cookie = 9,
                                  .dest_id = card.dest_id(),
                                  .length_bytes = kBytes,
                                  .op = op,
                                  .prio = 0};
    return card.card().dma().post(&request, 1) == 1 &&
           eventually([&] { return card.card().dma().reap(done, 1) == 1; });
  };
  pmd::EntryDone done{};
  if (!run(regs::DmaOp::kNwriteR, kRioAddr, card.memory().iova, &done) ||
      done.status != Status::kOk || !filled(window.va, kBytes, 5)) {
    return fail("NWRITE_R: status %d", static_cast<int>(done.status));
  }
  if (!run(regs::DmaOp::kNread, kRioAddr, card.memory().iova + kBytes, &done) ||
      done.status != Status::kOk || !filled(local + kBytes, kBytes, 5)) {
    return fail("NREAD: status %d", static_cast<int>(done.status));
  }
  // Beyond the window: there must be an answer.
  if (!run(regs::DmaOp::kNread, kRioAddr + kBytes, card.memory().iova, &done) ||
      done.status != Status::kErrorResponse) {
    return fail("NREAD beside the window: status %d", static_cast<int>(done.status));
  }
  return card.card().queues().windows().close(index) == 0 && card.close() == 0 ? 0 : 1;
}

/// doorbells CARD: sent, and received in the order of their numbers.
int doorbells(const Arguments& args) {
  static constexpr uint32_t kCount = 300;  // more than the ring holds
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    pmd::TxMessage out{};
    out.info = i;
    out.dest_id = card.dest_id();
    out.flags = pmd::TxFlags::kDoorbell;
    pmd::TxDone sent{};
    pmd::DoorbellEvent in{};
    if (!card.send(out, &sent) || sent.status != Status::kOk ||
        !eventually([&] { return card.card().doorbells().burst(&in, 1) == 1; }) || in.info != i ||
        in.source != card.dest_id()) {
      return fail("doorbell %u: status %d, came as %u", i, static_cast<int>(sent.status), in.info);
    }
  }
  return card.close() == 0 ? 0 : 1;
}

/// pair CARD CARD: two cards that are wired to each other.
int pair(const Arguments& args) {
  Station left;
  Station right;
  EndpointConfig config;
  config.dest_id = 2 * kDestId;
  if (!left.open(args[0]) || !right.open(args[1], config)) {
    return 1;
  }
  uint32_t value = 1;
  for (const uint32_t len_bytes : kSizes) {
    if (!left.pass(right, len_bytes, value, 0) || !right.pass(left, len_bytes, value + 1, 1)) {
      return 1;
    }
    value += 2;
  }
  return left.close() == 0 && right.close() == 0 ? 0 : 1;
}

/// functions CARD CARD: a physical function, and its virtual one, which is closed and opened again
/// while the physical one goes on.
int functions(const Arguments& args) {
  Station physical;
  EndpointConfig config;
  config.card.vf_qps = 1;
  if (!physical.open(args[0], config)) {
    return 1;
  }
  config = {};
  config.dest_id = kDestId + 1;
  uint32_t value = 1;
  for (int round = 0; round < 3; ++round) {
    Station of_vf;
    if (!of_vf.open(args[1], config)) {
      return 1;
    }
    for (const uint32_t len_bytes : kSizes) {
      if (!physical.pass(of_vf, len_bytes, value, 0) ||
          !of_vf.pass(physical, len_bytes, value + 1, 1)) {
        return 1;
      }
      value += 2;
    }
    if (of_vf.close() != 0 || !physical.pass(physical, kSizes[0], value, 2)) {
      return 1;
    }
  }
  return physical.close() == 0 ? 0 : 1;
}

}  // namespace rio::guest
