// Compresses as programs do: in one stream whose length is not recorded.
#pragma once
#include <zstd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace earshot::test {

inline std::string compressed(std::string_view bytes, int window_log = 0) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> stream(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(stream.get(), ZSTD_c_windowLog, window_log);  // 0: the level's
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer output{result.data(), result.size(), 0};
  REQUIRE_FALSE(ZSTD_isError(ZSTD_compressStream2(stream.get(), &output, &input, ZSTD_e_continue)));
  REQUIRE(ZSTD_compressStream2(stream.get(), &output, &input, ZSTD_e_end) == 0);
  result.resize(output.pos);
  return result;
}

}  // namespace earshot::test
