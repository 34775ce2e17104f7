#include "apps/tool/port_errors.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/formatted.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/ring.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t kTimeoutMs = 2000;
constexpr uint32_t kAssemblyInformationCar = 0x0C;  // RIO Part 1 §5.4.4
constexpr uint32_t kBlocksMax = 64;                 // of extended features; a longer chain loops
constexpr uint32_t kErrorManagement = 0x0007;       // RIO Part 8 §2.3
constexpr uint32_t kPortWritePort = 0xFF;           // of the third word. RIO Part 8 §1.3

/// A bit of a register. The specification counts from the most significant one.
struct Bit {
  uint32_t mask;
  const char* meaning;
};

// Logical/transport layer error detect CSR. RIO Part 8 §2.3.2.2
constexpr std::array kLogicalBits = {
    Bit{0x80000000, "error response to a read or write"},
    Bit{0x40000000, "error response to a message"},
    Bit{0x20000000, "error response to a GSM request"},
    Bit{0x10000000, "message with a wrong format"},
    Bit{0x08000000, "transaction that cannot be decoded"},
    Bit{0x04000000, "transaction with a wrong destID"},
    Bit{0x02000000, "message request time-out: segments stayed away"},
    Bit{0x01000000, "packet response time-out"},
    Bit{0x00800000, "unexpected response"},
    Bit{0x00400000, "transaction that is not supported"},
    Bit{0x00200000, "data streaming: context missing"},
    Bit{0x00100000, "data streaming: context open already"},
    Bit{0x00080000, "data streaming: segment too long"},
    Bit{0x00040000, "data streaming: segment too short"},
    Bit{0x00020000, "data streaming: wrong PDU length"},
    Bit{0x000000FF, "error of the implementation's own"},
};

// Port n error detect CSR. RIO Part 8 §2.3.2.10
constexpr std::array kPortBits = {
    Bit{0x80000000, "error of the implementation's own"},
    Bit{0x00800000, "control symbol with a wrong S bit"},
    Bit{0x00400000, "corrupt control symbol"},
    Bit{0x00200000, "acknowledgement with an unexpected ackID"},
    Bit{0x00100000, "packet-not-accepted received"},
    Bit{0x00080000, "packet with an unexpected ackID"},
    Bit{0x00040000, "packet with bad CRC"},
    Bit{0x00020000, "packet longer than 276 bytes"},
    Bit{0x00010000, "illegal or invalid character"},
    Bit{0x00008000, "data character in an idle sequence"},
    Bit{0x00004000, "descrambler lost its synchronisation"},
    Bit{0x00000020, "link response with an ackID that is not outstanding"},
    Bit{0x00000010, "protocol error"},
    Bit{0x00000004, "delineation error"},
    Bit{0x00000002, "unexpected acknowledgement"},
    Bit{0x00000001, "link time-out"},
};

// Port n error and status CSR; what is no error (port OK, retries) is left out. RIO Part 6 §6.6.8
constexpr std::array kStatusBits = {
    Bit{0x04000000, "packets were dropped on the way out"},
    Bit{0x02000000, "failed: too many errors, the error rate threshold was passed"},
    Bit{0x01000000, "degraded: the error rate threshold was passed"},
    Bit{0x00020000, "errors on the way out, recovered"},
    Bit{0x00010000, "output is stopped by an error"},
    Bit{0x00000200, "errors on the way in, recovered"},
    Bit{0x00000100, "input is stopped by an error"},
    Bit{0x00000010, "a port-write waits to be sent"},
    Bit{0x00000008, "port is not available"},
    Bit{0x00000004, "port has an error that it cannot recover from"},
    Bit{0x00000001, "port is not initialised: no link"},
};

std::string code(uint32_t offset, uint32_t bits) {
  return base::formatted("0x%06x: 0x%08x", offset, bits);
}

void decode(const char* where, uint32_t offset, uint32_t word, std::span<const Bit> bits,
            std::vector<CardError>* out) {
  for (const Bit& bit : bits) {
    if ((word & bit.mask) != 0) {
      out->push_back({where, bit.meaning, code(offset, word & bit.mask)});
    }
  }
}

/// A CSR. Says on stderr what went wrong.
int read_csr(const ReadCsr& read, uint32_t offset, uint32_t* word) {
  const int rc = read(offset, word);
  return rc == 0 ? 0
                 : complain(base::formatted("CSR 0x%06x of the card cannot be read: %s", offset,
                                            std::strerror(-rc)),
                            rc == -ENODEV ? "check slot, link and power, then rescan the bus"
                                          : "reset the card: 'rio-tool selftest' does",
                            rc);
}

/// Offset of the port's error and status CSR from its block, 0 if the block is no LP-Serial one.
uint32_t status_offset(uint32_t block_id) {
  constexpr uint32_t kMapTwo = 0x10;  // in the ids of register map II. RIO Part 6 §6.5
  const uint32_t kind = block_id & ~kMapTwo;
  const bool is_lp_serial = (kind >= 0x0001 && kind <= 0x0003) || kind == 0x0009;
  return !is_lp_serial ? 0 : (block_id & kMapTwo) != 0 ? 0x48 : 0x58;
}

/// Read one block of extended features.
int read_block(const ReadCsr& read, uint32_t base, uint32_t id, std::vector<CardError>* out) {
  const auto decode_at = [&](const char* where, uint32_t offset, std::span<const Bit> bits) {
    uint32_t word = 0;
    const int rc = read_csr(read, offset, &word);
    if (rc == 0) {
      decode(where, offset, word, bits, out);
    }
    return rc;
  };
  if (id == kErrorManagement) {
    const int rc = decode_at("logical layer", base + 0x08, kLogicalBits);
    return rc != 0 ? rc : decode_at("port 0", base + 0x40, kPortBits);
  }
  const uint32_t offset = status_offset(id);
  return offset == 0 ? 0 : decode_at("port 0", base + offset, kStatusBits);
}

/// Decode the payload of a port-write: component tag, port n error detect, port, logical layer
/// error detect (RIO Part 8 §1.3); here its errors, decoded.
std::vector<std::string> port_write_errors(const pmd::CardEvent& event) {
  std::vector<CardError> found;
  decode("port", 0, event.data[1], kPortBits, &found);
  decode("logical layer", 0, event.data[3], kLogicalBits, &found);
  std::vector<std::string> errors;
  errors.reserve(found.size());
  for (const CardError& one : found) {
    errors.push_back(one.where + ": " + one.what);
  }
  return errors;
}

/// TAIL of each ring that runs: what its program has posted. Of rings without entries it is what
/// the program has taken, plus the ring.
void add_rings(pmd::Card& card, std::vector<Count>* counts) {
  pmd::Mmio bar = card.bus().bar();
  for (uint32_t qp = 0; qp < card.caps().queue_pairs; ++qp) {
    for (uint32_t ring = 0; card.blocks().has_qp(qp) && ring < regs::kRingsPerQp; ++ring) {
      if (pmd::Ring::busy(bar, qp, ring) == 1) {
        counts->push_back({"qp" + std::to_string(qp) + "." + pmd::ring_name(ring) + ".posted",
                           bar.read32(regs::qp::tail(qp, ring))});
      }
    }
  }
}

/// Counters of the barrier engines that were used since the reset of their queue pair.
void add_barriers(pmd::Card& card, std::vector<Count>* counts) {
  pmd::Mmio bar = card.bus().bar();
  constexpr auto kRing = static_cast<uint32_t>(regs::Ring::kBarrier);
  for (uint32_t qp = 0; qp < card.caps().queue_pairs; ++qp) {
    if (!card.blocks().has_barrier(qp)) {
      continue;
    }
    const pmd::BarrierCounters values = card.barrier_counters(qp);
    if (pmd::Ring::busy(bar, qp, kRing) != 1 && values.sent == 0 && values.received == 0) {
      continue;
    }
    for (const auto& [name, value] : pmd::kBarrierCounterNames) {
      counts->push_back({"qp" + std::to_string(qp) + ".barrier." + name, values.*value});
    }
  }
}

/// Call it last: what was read before it may be all ones. @return 0, -ENODEV (the card is gone),
/// said on stderr.
int check_there(pmd::Card& card) {
  return !card.gone()
             ? 0
             : complain(card.bus().name() + ": the card is gone (its magic reads all ones)",
                        "check slot, link and power, then rescan the bus", -ENODEV);
}

}  // namespace

int take_sample(pmd::Card& card, PortSample* out) {
  PortSample sample;
  sample.at = std::chrono::steady_clock::now();
  const pmd::PortCounters port = card.counters();
  sample.counts = {{"tx_packets", port.tx_packets},   {"rx_packets", port.rx_packets},
                   {"tx_retries", port.tx_retries},   {"rx_retries", port.rx_retries},
                   {"rx_errors", port.rx_errors},     {"tx_timeouts", port.tx_timeouts},
                   {"rx_timeouts", port.rx_timeouts}, {"rx_unmapped", port.rx_unmapped}};
  add_rings(card, &sample.counts);
  add_barriers(card, &sample.counts);
  if (const int rc = check_there(card); rc != 0) {
    return rc;
  }
  *out = std::move(sample);
  return 0;
}

double per_second(const PortSample& before, const PortSample& now, const Count& count) {
  const std::chrono::duration<double> took = now.at - before.at;
  for (const Count& old : before.counts) {
    if (old.name == count.name && took.count() > 0) {
      return static_cast<uint32_t>(count.value - old.value) / took.count();  // over a wrap, too
    }
  }
  return 0;
}

int read_card_errors(pmd::Card& card, std::vector<CardError>* out) {
  std::vector<CardError> found;
  pmd::Mmio bar = card.bus().bar();
  for (uint32_t qp = 0; qp < card.caps().queue_pairs; ++qp) {
    for (uint32_t ring = 0; card.blocks().has_qp(qp) && ring < regs::kRingsPerQp; ++ring) {
      using Status = regs::qp::RingStatus;
      const uint32_t word = bar.read32(regs::qp::ring_status(qp, ring));
      if (Status::state.get(word) == static_cast<uint32_t>(regs::RingState::kError)) {
        const auto why = static_cast<regs::RingError>(Status::error.get(word));
        const uint32_t entry = bar.read32(regs::qp::ring_entry(qp, ring));
        found.push_back({"queue pair " + std::to_string(qp) + ", ring " + pmd::ring_name(ring),
                         "stopped: " + std::string(pmd::name(why)) + " at entry " +
                             std::to_string(entry) + "; " + pmd::remedy(why),
                         code(regs::qp::ring_status(qp, ring), word)});
      }
    }
  }
  const auto count = [&](const char* name, uint32_t offset, const char* meaning) {
    const uint32_t value = card.blocks().has_port() ? bar.read32(offset) : 0;
    if (value != 0) {
      found.push_back({std::string("counter ") + name, std::to_string(value) + " " + meaning,
                       code(offset, value)});
    }
  };
  count("rx_errors", regs::port::rx_errors(), "ERROR answers given");
  count("tx_timeouts", regs::port::tx_timeouts(), "responses never came");
  count("rx_timeouts", regs::port::rx_timeouts(), "messages came in part");
  count("rx_unmapped", regs::port::rx_unmapped(), "requests for an unknown destID or mailbox");
  if (const int rc = check_there(card); rc != 0) {
    return rc;
  }
  out->insert(out->end(), found.begin(), found.end());
  return 0;
}

int read_error_registers(const ReadCsr& read, std::vector<CardError>* out) {
  std::vector<CardError> found;
  uint32_t word = 0;
  if (const int rc = read_csr(read, kAssemblyInformationCar, &word); rc != 0) {
    return rc;
  }
  uint32_t base = word & 0xFFFF;
  for (uint32_t i = 0; base != 0; ++i) {
    if (i == kBlocksMax || base % 4 != 0) {
      return complain("the chain of extended features of the card " +
                          std::string(i == kBlocksMax ? "loops" : "is broken") + " at " +
                          std::to_string(base),
                      "update the gateware", -EPROTO);
    }
    uint32_t header = 0;
    int rc = read_csr(read, base, &header);
    rc = rc != 0 ? rc : read_block(read, base, header & 0xFFFF, &found);
    if (rc != 0) {
      return rc;
    }
    base = header >> 16;
  }
  out->insert(out->end(), found.begin(), found.end());
  return 0;
}

ReadCsr csr_reader(pmd::MaintQueue& maint) {
  return [&maint](uint32_t offset, uint32_t* word) {
    return maint.read_local(offset, {word, 1}, kTimeoutMs);
  };
}

std::string event_text(const pmd::CardEvent& event) {
  switch (event.type) {
    case regs::EventType::kLink:
      return event.info != 0 ? "link went up" : "link went down";
    case regs::EventType::kRingError:
      return "ring " +
             std::string(event.data[1] < regs::kRingsPerQp ? pmd::ring_name(event.data[1])
                                                           : "unknown") +
             " stopped: " + pmd::name(static_cast<regs::RingError>(event.info)) + " at entry " +
             std::to_string(event.data[0]);
    case regs::EventType::kOverflow:
      return std::to_string(event.info) + " events were lost for want of room";
    case regs::EventType::kBarrierForeign: {
      using Info = regs::barrier_notice::Info;
      return base::formatted(
          "0x%x sent a barrier notification that is not awaited: group %u, "
          "epoch %u modulo 8, round %u",
          event.source, Info::group.get(event.info), Info::epoch.get(event.info),
          Info::round.get(event.info));
    }
    case regs::EventType::kPortWrite: {
      std::string text = base::formatted("port-write of the device with tag 0x%x, port %u",
                                         event.data[0], event.data[2] & kPortWritePort);
      for (const std::string& error : port_write_errors(event)) {
        text.append("; ").append(error);
      }
      return text;
    }
    default:
      return base::formatted("%s from 0x%x, data %08x %08x %08x %08x", pmd::name(event.type),
                             event.source, event.data[0], event.data[1], event.data[2],
                             event.data[3]);
  }
}

Json event_json(const pmd::CardEvent& event) {
  Json json = {{"type", pmd::name(event.type)},
               {"source", event.source},
               {"info", event.info},
               {"data", {event.data[0], event.data[1], event.data[2], event.data[3]}}};
  if (event.type == regs::EventType::kPortWrite) {
    json["tag"] = event.data[0];
    json["port"] = event.data[2] & kPortWritePort;
    json["errors"] = port_write_errors(event);
  }
  return json;
}

void to_json(Json& json, const CardError& finding) {
  json = {{"where", finding.where}, {"what", finding.what}, {"code", finding.code}};
}

}  // namespace rio::tool
