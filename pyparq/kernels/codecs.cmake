# The compression libraries, built from sources and put into the module, for wheels (PYPARQ_CODEC_SOURCES).
# The folder holds the unpacked sources of .ci/codecs.txt. Each is asked for by a pattern: the folders' names have versions.
enable_language(C)

function(pyparq_find_source variable file)
  file(GLOB found "${PYPARQ_CODEC_SOURCES}/${file}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "PYPARQ_CODEC_SOURCES: ${count} files ${PYPARQ_CODEC_SOURCES}/${file}, expected one. "
      "`python .ci/wheels.py codecs` brings the sources.")
  endif()
  get_filename_component(folder "${found}" DIRECTORY)
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

set(CMAKE_UNITY_BUILD OFF)  # these are not made for it

# Their warnings are not ours. Nothing of them may be visible outside of the module, nor be taken from outside: the process
# may have another copy (Debian's python3 is linked to zlib).
function(pyparq_quiet_library name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_compile_options(${name} PRIVATE -w -O3)
endfunction()

pyparq_find_source(zstd "zstandard-*/zstd/zstd.c")
add_library(pyparq_zstd STATIC "${zstd}/zstd.c")
target_include_directories(pyparq_zstd PUBLIC "${zstd}")
target_compile_definitions(pyparq_zstd PRIVATE ZSTDLIB_VISIBLE= ZDICTLIB_VISIBLE= ZSTDERRORLIB_VISIBLE= ZSTDLIB_STATIC_API=)
pyparq_quiet_library(pyparq_zstd)

pyparq_find_source(brotli "brotli-*/c/include/brotli/decode.h")
get_filename_component(brotli "${brotli}/../.." ABSOLUTE)
file(GLOB brotli_files "${brotli}/common/*.c" "${brotli}/dec/*.c" "${brotli}/enc/*.c")
add_library(pyparq_brotli STATIC ${brotli_files})
target_include_directories(pyparq_brotli PUBLIC "${brotli}/include")
pyparq_quiet_library(pyparq_brotli)

pyparq_find_source(deflate "deflate-*/libdeflate/libdeflate.h")
file(GLOB deflate_files "${deflate}/lib/*.c" "${deflate}/lib/x86/*.c" "${deflate}/lib/arm/*.c")
add_library(pyparq_libdeflate STATIC ${deflate_files})
target_include_directories(pyparq_libdeflate PUBLIC "${deflate}")
pyparq_quiet_library(pyparq_libdeflate)

# zlib-ng, built to stand in for zlib: its own build knows what each processor can do.
pyparq_find_source(zlib "zlib_ng-*/src/zlib_ng/zlib-ng/CMakeLists.txt")
set(ZLIB_COMPAT ON)
set(WITH_GZFILEOP OFF)
set(BUILD_SHARED_LIBS OFF)
set(BUILD_TESTING OFF)
set(ZLIB_ALIASES OFF)
set(SKIP_INSTALL_ALL ON)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # its hundred questions are about the compiler: linking takes long
add_subdirectory("${zlib}" "${CMAKE_CURRENT_BINARY_DIR}/zlib-ng" EXCLUDE_FROM_ALL)
pyparq_quiet_library(zlib-ng)

set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/src/codecs/linked_libraries.cpp" APPEND PROPERTY
  COMPILE_DEFINITIONS PYPARQ_LINKED_CODECS PYPARQ_LIBDEFLATE)
target_link_libraries(_native PRIVATE pyparq_zstd pyparq_brotli pyparq_libdeflate zlib-ng)
if(CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF")
  target_link_options(_native PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map")
endif()

# The licences of what the module then holds go where a wheel keeps its own.
if(DEFINED SKBUILD_METADATA_DIR)
  set(licenses
    zstd "${zstd}/LICENSE" brotli "${brotli}/../LICENSE" libdeflate "${deflate}/COPYING" zlib-ng "${zlib}/LICENSE.md")
  while(licenses)
    list(POP_FRONT licenses name file)
    install(FILES "${file}" DESTINATION "${SKBUILD_METADATA_DIR}/licenses" RENAME "LICENSE.${name}")
  endwhile()
endif()
