# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where. Programs are installed where they are declared.
include(CMakePackageConfigHelpers)

set(bulkhead_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Bulkhead")

install(TARGETS bulkhead_shared bulkhead_static bulkhead_cuda_shared EXPORT BulkheadTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT BulkheadTargets NAMESPACE Bulkhead:: DESTINATION "${bulkhead_package_dir}")

# The API as data, for programs that make bindings: functions, structs with offsets, constants.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING)
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/bulkhead/*.h")
    set(describe "${PROJECT_SOURCE_DIR}/scripts/api/describe.py")
    set(description "${CMAKE_BINARY_DIR}/bulkhead-api.json")
    add_custom_command(OUTPUT "${description}"
        COMMAND Python3::Interpreter -B "${describe}" "${description}" "${CMAKE_C_COMPILER}" ${headers}
        DEPENDS "${describe}" "${PROJECT_SOURCE_DIR}/scripts/api/headers.py" ${headers} VERBATIM)
    add_custom_target(bulkhead_api ALL DEPENDS "${description}")
    install(FILES "${description}" DESTINATION "${CMAKE_INSTALL_DATADIR}/bulkhead")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/BulkheadConfig.cmake.in"
    "${CMAKE_BINARY_DIR}/BulkheadConfig.cmake" INSTALL_DESTINATION "${bulkhead_package_dir}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/BulkheadConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/BulkheadConfig.cmake"
              "${CMAKE_BINARY_DIR}/BulkheadConfigVersion.cmake"
        DESTINATION "${bulkhead_package_dir}")

# The prefix is worked out from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH BULKHEAD_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" BULKHEAD_PC_PREFIX "${BULKHEAD_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/bulkhead.pc.in" "${CMAKE_BINARY_DIR}/bulkhead.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/bulkhead-cuda.pc.in"
               "${CMAKE_BINARY_DIR}/bulkhead-cuda.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/bulkhead.pc" "${CMAKE_BINARY_DIR}/bulkhead-cuda.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)
install(FILES "${PROJECT_SOURCE_DIR}/docs/bulkhead.1"
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
# With its subfolders, so that links between pages and from README.md hold.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        FILES_MATCHING PATTERN "*.md")

# Where each shell looks.
set(completion "${PROJECT_SOURCE_DIR}/contrib/completion")
install(FILES "${completion}/bulkhead.bash" RENAME bulkhead
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${completion}/_bulkhead" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${completion}/bulkhead.fish"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
# Where the links of docs/ lead.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/contrib/grafana"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}/contrib")
