/// @file
/// The lcores that poll.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/testpmd/mode.hpp"
#include "pmd/cores/placement.hpp"

namespace rio::testpmd {

/// Lcores for a run: those of --forward-lcores, else of those that EAL has the ones nearest the
/// cards. @param placement of this machine, null if it is not known. @param streams how many there
/// are to poll. @param warnings to be shown, one a line.
/// @return 0, or -EINVAL where a list does not match.
[[nodiscard]] int choose_lcores(const Options& options, const Mode& mode,
                                const pmd::cores::Placement* placement,
                                std::span<const std::unique_ptr<TestPort>> ports, size_t streams,
                                std::vector<unsigned>* lcores, std::string* warnings,
                                std::string* error);

}  // namespace rio::testpmd
